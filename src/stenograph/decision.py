"""Match and render: what a prompt continues, and what is new in it. Decided without an await, for both kinds of prompt.

A conversation is matched by its messages and written by the chat template; a text, or ids, by what they are.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import msgspec
import numpy as np

from stenograph.core import (
    MOST_NESTED,
    PROMPT_ROLE,
    Ask,
    Conversation,
    Fork,
    Guide,
    Ids,
    Message,
    Note,
    NoteKind,
    Text,
    Tokens,
    Value,
    too_nested,
)
from stenograph.errors import CallerError
from stenograph.house import House
from stenograph.live import LiveSession
from stenograph.render.held import NO_DEMAND, Demand, Holder
from stenograph.render.prompting import Prompt, Replied
from stenograph.render.reply import ReplyReader
from stenograph.session import fork, plain
from stenograph.session.canonical import arguments_hash, tools_hash
from stenograph.session.match import Chained, Match, match
from stenograph.session.recall import meant, recalled
from stenograph.session.restore import restored
from stenograph.store.store import Blob

NO_TEMPLATE = ""
"""In place of a template's hash, on a call that none wrote."""


class Decision(Value):
    """What is known of a turn's prompt before anything is sampled."""

    after: str | None
    shared: int
    parent: str | None
    messages: tuple[Message, ...]
    """As `Call` has these four."""
    context: Ids
    prompt: Ids
    """The path's ids, and behind them the context's: what the engine is sent."""
    text_chars: int
    text_hash: str
    inert: bool
    notes: tuple[Note, ...]
    template_hash: str
    keys: tuple[Blob, Blob]
    """The tools and the template arguments, by their hashes: kept once, however many calls carry them."""
    closes: tuple[str, ...]
    """Texts at which the model has to be stopped, where no control token closes its turn."""
    fork: Callable[[], Fork | None]
    """Asked when the call is recorded: of two equal calls at once the first simply goes on."""
    guide: Guide | None
    """What the reply is held to: what the caller asked for, in the form of the model's family."""
    reader: Callable[[tuple[str, ...], bool], ReplyReader]
    """For one choice, given the stop strings that were sent, and whether calls are told while they are written."""


def decided(house: House, session: LiveSession, ask: Ask) -> Decision:
    demand = Demand(ask.sampling.guide, ask.tool_choice == "required", ask.tool, ask.single_call)
    prompt, named = recalled(session.tree, ask), meant(session.tree, ask)
    return decided_on(house, session, prompt, demand, named=named, calls_read=ask.tool_choice != "none")


def decided_on(
    house: House,
    session: LiveSession,
    prompt: Conversation | Text | Tokens,
    demand: Demand = NO_DEMAND,
    *,
    named: frozenset[str] = frozenset(),
    calls_read: bool = True,
) -> Decision:
    """`named`: turns that are meant, of several that said the same."""
    if isinstance(prompt, Conversation):
        _check_nesting(prompt)
        return _conversation(house, session, prompt, demand, named, calls_read=calls_read)
    return _plain(house, session, prompt, demand.guide)


def _check_nesting(conversation: Conversation) -> None:
    calls = (call.arguments for message in conversation.messages for call in message.tool_calls)
    for field, values in (
        ("tools", conversation.tools),
        ("chat_template_kwargs", (conversation.template_arguments,)),
        ("messages", calls),
    ):
        if any(too_nested(value) for value in values):
            raise CallerError(f"{field}: something in it is nested more than {MOST_NESTED} levels deep", param=field)


# --------------------------------------------------------------------------------------------------- by the template


def _conversation(
    house: House,
    session: LiveSession,
    conversation: Conversation,
    demand: Demand,
    named: frozenset[str],
    *,
    calls_read: bool,
) -> Decision:
    asked = session.heard.chained(house.renderer.relevant(conversation))
    strict = (session.facts.reasoning or house.reasoning) == "strict"
    matched = match(session.tree, asked, strict=strict, named=named)
    whole = restored(session.tree, asked.conversation, matched, strict=strict)
    prompt, parent = _rendered(house, session, asked, matched, whole)
    read = asked.conversation if calls_read else msgspec.structs.replace(asked.conversation, tools=())
    family = house.renderer.family(asked.conversation)
    return Decision(
        after=matched.after,
        shared=matched.shared,
        parent=parent,
        messages=whole.messages[matched.shared :],
        context=prompt.context,
        prompt=np.concatenate([session.tree.ids(parent), prompt.context]),
        text_chars=prompt.text_chars,
        text_hash=prompt.text_hash,
        inert=prompt.look.inert,
        notes=(*matched.notes, *map(_not_written, prompt.look.unwritten)),
        template_hash=family.template.hash,
        keys=_keys(asked.conversation),
        closes=family.stop_strings,
        fork=lambda: fork.foremost(fork.fork_of(session.tree, asked, matched), prompt.fork),
        guide=Holder(family, read, thinking=prompt.thinking).guide(demand),
        reader=lambda stop, early: house.renderer.reader(
            read, thinking=prompt.thinking, stop=stop, new_call_id=house.new_id, early=early
        ),
    )


def _rendered(
    house: House, session: LiveSession, asked: Chained, matched: Match, whole: Conversation
) -> tuple[Prompt, str | None]:
    facts, tree = session.facts, session.tree
    path = [Replied(turn, turn.call.reply_index) for turn in tree.path(matched.anchor)]
    prompt = house.renderer.prompt(
        whole,
        path,
        sampled=frozenset(turn.call.reply_index for turn in tree.conversation(matched.after)),
        key=f"{asked.tools_hash} {asked.arguments_hash}",
        now=datetime.datetime.fromtimestamp(facts.created_at),
        verbatim=(facts.history or house.history) == "verbatim",
    )
    return prompt, path[prompt.kept - 1].turn.id if prompt.kept else None


def _not_written(path: str) -> Note:
    return Note(NoteKind.FIELD_IGNORED, f"{path}: the template writes nothing of it")


def _keys(conversation: Conversation) -> tuple[Blob, Blob]:
    tools, arguments = msgspec.json.encode(conversation.tools), msgspec.json.encode(conversation.template_arguments)
    return Blob(tools_hash(conversation), tools), Blob(arguments_hash(conversation), arguments)


# ---------------------------------------------------------------------------------------------------------- as it is


def _plain(house: House, session: LiveSession, prompt: Text | Tokens, guide: Guide | None) -> Decision:
    tree, renderer = session.tree, house.renderer
    found, notes = plain.reach(tree, prompt, renderer.tokenizer)
    path = tree.ids(found.id)
    new = renderer.plain_context(prompt, found.end, int(path[-1]) if len(path) else None)
    return Decision(
        after=found.id,
        shared=found.shared,
        parent=found.id,
        messages=(Message(PROMPT_ROLE, new.text),),
        context=new.ids,
        prompt=np.concatenate([path, new.ids]),
        text_chars=len(new.text),
        text_hash=new.hash,
        inert=False,
        notes=notes,
        template_hash=NO_TEMPLATE,
        keys=_keys(Conversation(())),
        closes=(),
        fork=lambda: plain.fork_of(tree, prompt, found, renderer.tokenizer),
        guide=guide,
        reader=lambda stop, early: renderer.plain_reader(stop),
    )
