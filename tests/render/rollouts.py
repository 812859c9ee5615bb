"""Rollouts without a server: a renderer and a tree, a model that spells in its own way, law 9 on each turn.

What the model says is written in its family's form but never in canonical tokens. Whether a prompt reads right is told
by the template alone: its render of the conversation is laid beside the text of the ids that would be sent.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import JSON, Call, Conversation, Finish, Fork, Ids, Message, Part, Sampling, ToolCall, Turn
from stenograph.render.family import Family
from stenograph.render.grammar import Parsers
from stenograph.render.prompting import Prompt, Prompting, Replied
from stenograph.render.renderer import Renderer
from stenograph.render.template import Template, all_seen
from stenograph.render.tokenizer import Tokenizer
from stenograph.render.writing import ReplyWriter
from stenograph.session.fork import foremost, fork_of
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
        self.unwritten: list[tuple[str, ...]] = []
        """By turn, what the template writes nothing of."""
        self.family: Family = renderer.family(Conversation((), (TOOL,)))
        """How the model writes: models with a second template write by that one."""
        self._writer = ReplyWriter(self.family, renderer.eos)
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
        matched = match(self.tree, asked, strict=self._strict)
        whole = restored(self.tree, conversation, matched, strict=self._strict)
        path = [Replied(turn, turn.call.reply_index) for turn in self.tree.path(matched.anchor)]
        sampled = frozenset(turn.call.reply_index for turn in self.tree.conversation(matched.after))
        key = asked.tools_hash + asked.arguments_hash
        prompt = self.renderer.prompt(whole, path, sampled=sampled, key=key, now=NOW, verbatim=self._verbatim)
        self._check_against_full(whole, path, sampled, prompt)
        kept = [replied.turn for replied in path[: prompt.kept]]
        self._check_prompt(whole, kept, prompt)
        fork = foremost(fork_of(self.tree, asked, matched), prompt.fork)
        text = raw if raw is not None else self.written(prompt, says, thinks, calls, close)
        ids = self.spelled(text)[:cut]
        turn = self._turn(asked, matched, prompt, kept, fork, whole, ids, Finish("length" if cut else "stop"))
        if cut is None and raw is None:
            self._check_reply(turn.reply, says, thinks, calls)
        self.tree.add([turn])
        self.forks.append(fork.reason.value if fork else "")
        self.unwritten.append(prompt.look.unwritten)
        return turn.reply

    def _check_against_full(
        self, whole: Conversation, path: list[Replied], sampled: frozenset[int], prompt: Prompt
    ) -> None:
        """A certificate gives what the whole conversation gives."""
        family = self.renderer.family(whole)
        full = Prompting(family, whole, path, sampled, NOW).prompt(verbatim=self._verbatim)
        assert (prompt.kept, prompt.text_hash, prompt.fork) == (full.kept, full.text_hash, full.fork)
        assert prompt.context.tolist() == full.context.tolist()
        assert prompt.look.unwritten == full.look.unwritten

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
            inert=prompt.look.inert and (kept[-1].call.inert if kept else True),
            messages=whole.messages[matched.shared :],
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
        return Turn(
            f"turn{number}",
            call,
            0,
            (part,),
            reader.reply,
            "stop",
            ending=reader.ending,
            notes=reader.notes,
            written=reader.written,
        )

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
                ids += self.family.vocabulary.literals.encode_behind(-1, piece[:size])
                piece = piece[size:]
        return ids

    def written(self, prompt: Prompt, says: str | None, thinks: str | None, calls: Calls, close: str | None) -> str:
        """`calls` get ids of their own as they are written."""
        made = tuple(ToolCall("", name, arguments) for name, arguments in calls)
        return self._writer.write(Message("assistant", says, thinks, made), thinking=prompt.thinking, close=close)

    # -- what has to hold ----------------------------------------------------------------------------------

    def _check_reply(self, reply: Message, says: str | None, thinks: str | None, calls: Calls) -> None:
        """What was written in the family's form is read back."""
        assert (reply.content or "").strip() == (says or "").strip()
        if thinks is not None and self.family.grammar.think is not None:
            assert (reply.reasoning or "").strip() == thinks.strip()
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [tuple(call) for call in calls]

    def _check_prompt(self, whole: Conversation, kept: list[Turn], prompt: Prompt) -> None:
        if not self._verbatim:
            spell = self.renderer.tokenizer.decode
            contexts = [spell(context.tolist()) for context in (*(turn.call.context for turn in kept), prompt.context)]
            check_reads_right(self.template_render(whole), contexts, [spell(turn.sampled.tolist()) for turn in kept])

    def template_render(self, whole: Conversation) -> str:
        family = self.renderer.family(whole)
        messages = all_seen([family.masker.message(message) for message in whole.messages], family.grammar.style)
        literals = family.vocabulary.literals
        tools = literals.mask_within(list(whole.tools))
        generate = whole.messages[-1].role != "assistant"
        text = family.template.render(messages, tools, whole.template_arguments, generate=generate, now=NOW)
        return squeezed(literals.unmask(text))


def check_reads_right(render: str, contexts: Sequence[str], said: Sequence[str]) -> None:
    """Law 9. Contexts have to stand in the template's `render`, one behind the other and in the order of the path;
    between them the render has to say what was sampled there."""
    first, *later = map(squeezed, contexts)
    assert render.startswith(first), f"the prompt begins otherwise: {first[-200:]!r} in {render[:400]!r}"
    position = len(first)
    for text, context in zip(said, later, strict=True):
        at = render.find(context, position)
        assert at >= 0, f"not in the template's render: {context!r}"
        wanted, written = loose(text), loose(render[position:at])
        assert written == wanted, f"the template writes {written!r} where {wanted!r} was sampled"
        position = at + len(context)
    assert position == len(render), f"the prompt ends before {render[position:]!r}"


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def loose(text: str) -> str:
    """The message and its markers, whatever the white space, the quoting and the order of keys; an empty reasoning
    block says nothing."""
    text = re.sub(r'[\s"\\]', "", text).replace("<think></think>", "")
    text = text.replace("True", "true").replace("False", "false")  # some templates print values as Python does
    text = re.sub(r"(functions\.look):\d+", r"\1", text)  # Kimi's calls are numbered, which is not what they say
    return "".join(sorted(re.split(r"([,{}\[\]:])", text)))
