"""What has to hold after every field test: the laws, against the engine's own log, and law 9 against the template."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from stenograph.core import Call, Conversation, Message, Turn
from stenograph.wire import chat
from tests.field.player import FieldStage
from tests.laws import checks
from tests.laws.record import Record, sampled
from tests.render.rollouts import Rollout, check_reads_right, squeezed


async def check_session(stage: FieldStage, record: Record) -> None:
    checks.check_engine_truth(record)
    checks.check_reach(record)
    checks.check_forks_are_typed(record)
    await checks.check_told(stage, record)
    await checks.check_samples(stage, record)
    assert stage.witness.breaches == []
    for call in record.calls:
        check_prompt(stage, record, call)


def check_prompt(stage: FieldStage, record: Record, call: Call) -> None:
    """Law 9: what was sent reads as the template writes the conversation that the caller sent."""
    voice = Rollout(stage.renderer)
    sent = chat.decode(stage.asked[call.body_hash], lambda id: b"").ask
    assert isinstance(sent.prompt, Conversation)
    conversation = voice.renderer.relevant(sent.prompt)
    strict = stage.settings.reasoning == "strict"
    render = voice.template_render(_as_recorded(conversation, record, call, strict=strict))
    spell = voice.renderer.tokenizer.decode
    path = list(_path(record, call))
    contexts = [spell(one.context.tolist()) for one in (*(turn.call for turn in path), call)]
    if stage.settings.history == "template" or not path:
        check_reads_right(render, contexts, [spell(sampled(turn)) for turn in path])
    else:
        assert render.endswith(squeezed(contexts[-1]))


def _path(record: Record, call: Call) -> Iterator[Turn]:
    """Root first."""
    if call.parent is not None:
        turn = record.turns[call.parent]
        yield from _path(record, turn.call)
        yield turn


def _as_recorded(asked: Conversation, record: Record, call: Call, *, strict: bool) -> Conversation:
    """With what was left out of the replies that the call follows; they are the ones that the caller sent."""
    messages, renamed = list(asked.messages), dict[str, str]()
    for turn in record.conversation(call):
        place = turn.call.reply_index
        assert _means(messages[place], turn.reply), (messages[place], turn.reply)
        calls = zip(messages[place].tool_calls, turn.reply.tool_calls, strict=True)
        renamed.update({theirs.id: ours.id for theirs, ours in calls})
        reasoning = messages[place].reasoning if strict else turn.reply.reasoning
        messages[place] = msgspec.structs.replace(turn.reply, reasoning=reasoning)
    return msgspec.structs.replace(asked, messages=tuple(_answering(message, renamed) for message in messages))


def _answering(message: Message, renamed: dict[str, str]) -> Message:
    """Results answer the calls on record, whatever the agent calls them."""
    if message.tool_call_id not in renamed:
        return message
    return msgspec.structs.replace(message, tool_call_id=renamed[message.tool_call_id])


def _means(sent: Message, reply: Message) -> bool:
    def meaning(message: Message) -> object:
        return (message.content or "").strip(), [(call.name, _value(call.arguments)) for call in message.tool_calls]

    return sent.role == "assistant" and meaning(sent) == meaning(reply)


def _value(arguments: object) -> object:
    """As values; an agent that prints them as Python would has sent text."""
    return ast.literal_eval(arguments) if isinstance(arguments, str) else arguments
