"""Rollouts without a server: a renderer and a tree, a model that spells in its own way, and law 9 looked at on each turn.

What the model says is written in its family's form but never in canonical tokens. Whether a prompt reads right is told by
the template alone: its render of the conversation is laid beside the text of the ids that would be sent.
"""

from __future__ import annotations

import datetime
import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import JSON, Call, Conversation, Finish, Fork, Ids, Message, Part, Sampling, Turn
from stenograph.render.grammar import Parsers
from stenograph.render.marks import ANYTHING
from stenograph.render.renderer import Prompt, Renderer, Replied
from stenograph.render.template import Template, as_template_sees
from stenograph.render.tokenizer import Tokenizer
from stenograph.session.fork import fork_of
from stenograph.session.match import Chained, Match, chained, match
from stenograph.session.restore import restored
from stenograph.session.tree import Tree

NOW = datetime.datetime(2026, 11, 18)
TOOL: dict[str, JSON] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks something up.",
        "parameters": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "description": "what"},
                "n": {"type": "integer", "description": "how many"},
            },
            "required": ["q"],
        },
    },
}
Calls = Sequence[tuple[str, dict[str, JSON]]]


def renderer_of(folder: Path) -> Renderer:
    files = load_model_files(str(folder))
    assert files.chat_template is not None
    tool_template = Template(files.tool_chat_template, files.special_tokens) if files.tool_chat_template else None
    return Renderer(
        load_tokenizer(files),
        Template(files.chat_template, files.special_tokens),
        tool_template,
        Parsers(),
        files.eos_token,
        {},
    )


def renderer_with(tokenizer: Tokenizer, template: str, eos: str) -> Renderer:
    return Renderer(tokenizer, Template(template, {"eos_token": eos}), None, Parsers(), eos, {})


class Rollout:
    def __init__(self, renderer: Renderer, seed: int = 0, *, verbatim: bool = False, strict: bool = False) -> None:
        self.renderer = renderer
        self.tree = Tree()
        self.forks: list[str] = []
        """By turn, the reason; '' where there is none."""
        self._random = random.Random(seed)
        self._verbatim = verbatim
        self._strict = strict

    # -- one turn ------------------------------------------------------------------------------------------

    def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[dict[str, JSON]] = (),
        arguments: Mapping[str, JSON] = {},
        *,
        says: str | None = None,
        thinks: str | None = None,
        calls: Calls = (),
        close: str | None = None,
        cut: int | None = None,
        raw: str | None = None,
    ) -> Message:
        """`close`: what the model ends with, '' nothing, None the template's own. `cut`: after so many tokens."""
        conversation = self.renderer.relevant(Conversation(tuple(messages), tuple(tools), dict(arguments)))
        asked = chained(conversation)
        matched = match(self.tree, asked)
        whole = restored(self.tree, conversation, matched, strict=self._strict)
        path = [Replied(turn, turn.call.shared + len(turn.call.messages)) for turn in self.tree.path(matched.anchor)]
        prompt = self.renderer.prompt(whole, path, now=NOW, verbatim=self._verbatim)
        kept = [replied.turn for replied in path[: prompt.kept]]
        self._check_prompt(whole, kept, prompt)
        fork = prompt.fork or fork_of(self.tree, asked, matched)
        text = raw if raw is not None else self.written(prompt, says, thinks, calls, close)
        ids = self.spelled(text)[:cut]
        turn = self._turn(asked, matched, prompt, kept, fork, whole, ids, Finish("length" if cut else "stop"))
        if cut is None and raw is None:
            self._check_reply(turn.reply, says, thinks, calls)
        self.tree.add([turn])
        self.forks.append(fork.reason.value if fork else "")
        return turn.reply

    def _turn(
        self,
        asked: Chained,
        matched: Match,
        prompt: Prompt,
        kept: list[Turn],
        fork: Fork | None,
        whole: Conversation,
        ids: list[int],
        finish: Finish,
    ) -> Turn:
        reader = self.renderer.reader(whole, thinking=prompt.thinking, stop=(), new_call_id=self._call_id)
        for id in ids:
            reader.feed([id])
        reader.finish(ids, finish)
        number = len(self.tree.calls)
        call = Call(
            id=f"call{number}",
            session_id="session",
            parent=kept[-1].id if kept else None,
            after=matched.after,
            shared=matched.shared,
            context=prompt.context,
            text_chars=prompt.text_chars,
            text_hash=prompt.text_hash,
            messages=asked.conversation.messages[matched.shared :],
            tools_hash=asked.tools_hash,
            arguments_hash=asked.arguments_hash,
            protocol="chat",
            model="model",
            sampling=Sampling(),
            own_stops=(),
            n=1,
            request_id="",
            body_hash="",
            idempotency_key=None,
            template_hash="",
            tokenizer_hash="",
            created_at=0,
            first_token_at=0,
            finished_at=0,
            fork=fork,
            notes=matched.notes,
        )
        sampled: Ids = np.array(ids, np.int32)
        part = Part(sampled, np.zeros(len(ids), np.float32), engine="e", engine_kind="scripted", logprob_kind="raw")
        return Turn(f"turn{number}", call, 0, (part,), reader.reply, "stop", ending=reader.ending, notes=reader.notes)

    def _call_id(self) -> str:
        return "".join(self._random.choices("abcdefghij0123456789", k=9))

    # -- what the model says -------------------------------------------------------------------------------

    def spelled(self, text: str) -> list[int]:
        """In tokens that are not the canonical ones: the text is cut at random places, and each piece encoded alone."""
        tokenizer, ids = self.renderer.tokenizer, list[int]()
        words = sorted((word for word in tokenizer.added if word.strip()), key=len, reverse=True)
        for place, piece in enumerate(re.split("(" + "|".join(map(re.escape, words)) + ")", text)):
            if place % 2:
                ids.append(tokenizer.added[piece])
            while not place % 2 and piece:
                size = self._random.randint(1, 9)
                ids += self.renderer.literals.encode_behind(-1, piece[:size])
                piece = piece[size:]
        return ids

    def written(
        self, prompt: Prompt, says: str | None, thinks: str | None, calls: Calls, close: str | None
    ) -> str:
        grammar, spell = self.renderer.grammar, self.renderer.coding.spell
        text = ""
        if grammar.think is not None and (thinks is not None or prompt.thinking):
            opening, closing = map(spell, grammar.think)
            text += ("" if prompt.thinking else f"{opening}\n") + f"{thinks or ''}\n{closing}"
            text += "" if closing.startswith("<|end|>") else "\n\n"
        if says is not None:
            text += spell(grammar.content_opening) + says
        if calls:
            text += self._written_calls(calls)
        return text + (self.close(bool(calls)) if close is None else close)

    def close(self, called: bool) -> str:
        """How the model ends: as its family does, which is not always as the template repeats it."""
        renderer, form = self.renderer, self.renderer.grammar.call
        if called and form is not None and form.turn_close:
            return renderer.coding.spell(form.turn_close)
        closes = [renderer.tokenizer.text_of(id) for id in sorted(renderer.stop_ids)]
        preferred = ("<|observation|>",) if called else ("<|return|>", "<|user|>", "<|im_end|>", "<|end|>")
        return next((word for word in preferred if word in closes), closes[0] if closes else "")

    def _written_calls(self, calls: Calls) -> str:
        form, spell = self.renderer.grammar.call, self.renderer.coding.spell
        assert form is not None
        bodies, ids = [], [f"zzzzzzzz{place}" for place in range(len(calls))]
        for place, (name, arguments) in enumerate(calls):
            if form.kind == "object":
                named = {form.name_key: name, form.arguments_key: arguments}
                bodies.append(json.dumps(named | ({form.id_key: ids[place]} if form.id_key else {})))
            elif form.kind == "named":
                spelled = f"functions.{name}:{place}" if form.by_id else name
                bodies.append(spelled + spell(form.between).replace(ANYTHING, ids[place]) + json.dumps(arguments))
            else:
                before, between, behind = map(spell, form.param)
                values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
                pairs = [before + key + between + value + behind for key, value in values.items()]
                bodies.append(name + spell(form.between) + "".join(pairs))
        listed = "[" + ", ".join(bodies) + "]" if form.id_key else spell(form.again).join(bodies)
        return spell(form.opening) + listed + spell(form.closing)

    # -- what has to hold ----------------------------------------------------------------------------------

    def _check_reply(self, reply: Message, says: str | None, thinks: str | None, calls: Calls) -> None:
        """What was written in the family's form is read back."""
        assert (reply.content or "").strip() == (says or "").strip()
        if thinks is not None and self.renderer.grammar.think is not None:
            assert (reply.reasoning or "").strip() == thinks.strip()
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [tuple(call) for call in calls]

    def _check_prompt(self, whole: Conversation, kept: list[Turn], prompt: Prompt) -> None:
        """Law 9. Contexts have to stand in the template's render, one behind the other and in the order of the path;
        between them the render has to say what was sampled there."""
        if self._verbatim:
            return
        render, spell = self.template_render(whole), self.renderer.tokenizer.decode
        contexts = [squeezed(spell(turn.call.context.tolist())) for turn in kept]
        contexts.append(squeezed(spell(prompt.context.tolist())))
        assert render.startswith(contexts[0]), f"the prompt begins otherwise: {contexts[0][-200:]!r} in {render[:400]!r}"
        position = len(contexts[0])
        for turn, context in zip(kept, contexts[1:], strict=True):
            at = render.find(context, position)
            assert at >= 0, f"not in the template's render: {context!r}"
            wanted, written = loose(spell(turn.sampled.tolist())), loose(render[position:at])
            assert written == wanted, f"the template writes {written!r} where {wanted!r} was sampled"
            position = at + len(context)
        assert position == len(render), f"the prompt ends before {render[position:]!r}"

    def template_render(self, whole: Conversation) -> str:
        renderer = self.renderer
        messages = [
            as_template_sees(renderer.masker.message(message), renderer.grammar.style) for message in whole.messages
        ]
        tools = renderer.literals.mask_within(list(whole.tools))
        template = renderer.template_for(whole)
        generate = whole.messages[-1].role != "assistant"
        text = template.render(messages, tools, whole.template_arguments, generate=generate, now=NOW)
        return squeezed(renderer.literals.unmask(text))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def loose(text: str) -> str:
    """The message and its markers, whatever the white space, the quoting and the order of keys; an empty reasoning
    block says nothing."""
    text = re.sub(r'[\s"\\]', "", text).replace("<think></think>", "")
    text = re.sub(r"(functions\.look):\d+", r"\1", text)  # Kimi's calls are numbered, which is not what they say
    return "".join(sorted(re.split(r"([,{}\[\]:])", text)))
