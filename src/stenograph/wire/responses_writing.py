"""One item of an output while it is written: the events that open it, fill it and close it, in OpenAI's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec
from msgspec import UNSET

from stenograph.wire import responses_answer as answer
from stenograph.wire.logprobs import TokenLogprob
from stenograph.wire.responses_names import item_name
from stenograph.wire.responses_seal import seal
from stenograph.wire.responses_tools import INPUT, Known


class Writing(Protocol):
    def begun(self) -> Iterator[answer.OfOutput]: ...

    def ended(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        """The last event holds the item as it is then."""

    def item(self, status: answer.Status) -> answer.Item: ...


class Reasoning:
    def __init__(self, id: str, place: int, *, sealed: bool) -> None:
        self._id = id
        self._place = place
        self._sealed = sealed
        self._said: list[str] = []

    def item(self, status: answer.Status) -> answer.ReasoningItem:
        text = "".join(self._said)
        content = [answer.ReasoningText(text)] if text else []
        return answer.ReasoningItem(
            self._id, status, content, encrypted_content=seal(text) if self._sealed and text else UNSET
        )

    def begun(self) -> Iterator[answer.OfOutput]:
        yield answer.ItemAdded(item=self.item("in_progress"), output_index=self._place)
        yield answer.PartAdded(item_id=self._id, output_index=self._place, part=answer.ReasoningText(""))

    def more(self, text: str) -> answer.OfOutput:
        self._said.append(text)
        return answer.ReasoningDelta(item_id=self._id, output_index=self._place, delta=text)

    def ended(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        item = self.item(status)
        [part] = item.content
        yield answer.ReasoningDone(item_id=self._id, output_index=self._place, text=part.text)
        yield answer.PartDone(item_id=self._id, output_index=self._place, part=part)
        yield answer.ItemDone(item=item, output_index=self._place)


class Text:
    def __init__(self, id: str, place: int) -> None:
        self._id = id
        self._place = place
        self._said: list[str] = []
        self._logprobs: list[TokenLogprob] = []

    def item(self, status: answer.Status) -> answer.MessageItem:
        return answer.MessageItem(self._id, status, [answer.OutputText("".join(self._said), self._logprobs)])

    def begun(self) -> Iterator[answer.OfOutput]:
        yield answer.ItemAdded(item=answer.MessageItem(self._id, "in_progress", []), output_index=self._place)
        yield answer.PartAdded(item_id=self._id, output_index=self._place, part=answer.OutputText(""))

    def more(self, text: str, logprobs: list[TokenLogprob]) -> answer.OfOutput:
        self._said.append(text)
        self._logprobs += logprobs
        return answer.TextDelta(item_id=self._id, output_index=self._place, delta=text, logprobs=logprobs)

    def ended(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        item = self.item(status)
        [part] = item.content
        yield answer.TextDone(item_id=self._id, output_index=self._place, text=part.text, logprobs=part.logprobs)
        yield answer.PartDone(item_id=self._id, output_index=self._place, part=part)
        yield answer.ItemDone(item=item, output_index=self._place)


class FunctionCall:
    def __init__(self, id: str, place: int, call_id: str, known: Known) -> None:
        self._id = id
        self._place = place
        self._call_id = call_id
        self._known = known
        self._said: list[str] = []

    def item(self, status: answer.Status) -> answer.FunctionCallItem:
        known = self._known
        return answer.FunctionCallItem(
            self._id, self._call_id, known.name, "".join(self._said), status, known.namespace or UNSET
        )

    def begun(self) -> Iterator[answer.OfOutput]:
        yield answer.ItemAdded(item=self.item("in_progress"), output_index=self._place)

    def more(self, arguments: str) -> Iterator[answer.OfOutput]:
        self._said.append(arguments)
        if arguments:
            yield answer.ArgumentsDelta(item_id=self._id, output_index=self._place, delta=arguments)

    def ended(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        item = self.item(status)
        yield answer.ArgumentsDone(item_id=self._id, output_index=self._place, name=item.name, arguments=item.arguments)
        yield answer.ItemDone(item=item, output_index=self._place)


class CustomCall:
    """Its input is one text, which the model has written as an argument: it can be read only when it is there. Where
    the arguments are anything else, they are the input as they stand, and the item's name says so (`ctj`)."""

    def __init__(self, turn_id: str, number: int, place: int, call_id: str, known: Known) -> None:
        self._turn_id = turn_id
        self._number = number
        self._place = place
        self._call_id = call_id
        self._known = known
        self._said: list[str] = []

    def item(self, status: answer.Status) -> answer.CustomCallItem:
        arguments = "".join(self._said)
        text, known = _input(arguments), self._known
        name = item_name("ctj" if text is None else "ctc", self._turn_id, self._number)
        return answer.CustomCallItem(
            name, self._call_id, known.name, arguments if text is None else text, status, known.namespace or UNSET
        )

    def begun(self) -> Iterator[answer.OfOutput]:
        return iter(())

    def more(self, arguments: str) -> Iterator[answer.OfOutput]:
        self._said.append(arguments)
        return iter(())

    def ended(self, status: answer.Status) -> Iterator[answer.OfOutput]:
        item, place = self.item(status), self._place
        yield answer.ItemAdded(item=msgspec.structs.replace(item, input="", status="in_progress"), output_index=place)
        yield answer.InputDelta(item_id=item.id, output_index=place, delta=item.input)
        yield answer.InputDone(item_id=item.id, output_index=place, input=item.input)
        yield answer.ItemDone(item=item, output_index=place)


def _input(arguments: str) -> str | None:
    """None: the arguments are not just an input."""
    try:
        [(name, text)] = msgspec.json.decode(arguments, type=dict[str, str]).items()
    except ValueError:
        return None
    return text if name == INPUT else None
