"""Which turn does a prompt without messages continue? Completions and `/inference/v1/generate` send text, or ids.

The tree is walked from its root, context by context and reply by reply, as long as the prompt goes on with what is
recorded there. The deepest turn that it covers whole is what it continues; what is recorded behind that turn, and is
not in the prompt, tells why it forks.

A text says less than ids do. A stop token stands in the path and was never shown to the caller, so a text may pass
over it. What a stop string cut off was sampled, too: it has to come again in the text, because it stands in the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from stenograph.core import (
    PROMPT_ROLE,
    Call,
    Fork,
    ForkReason,
    Ids,
    Note,
    NoteKind,
    Text,
    Tokens,
    Turn,
    Value,
    text_hash,
)
from stenograph.session.tree import Tree


class Spelling(Protocol):
    """What has to be known of a tokenizer to follow a text along ids."""

    special: frozenset[int]

    def decode(self, ids: Sequence[int]) -> str: ...

    def encode(self, text: str, *, special: bool = False) -> list[int]: ...


class Reach(Value):
    """How far a prompt goes along one way through the tree."""

    turn: Turn | None = None
    """The last one that it covers whole; None: none."""
    end: int = 0
    """Where in the prompt what follows that turn begins."""
    silent: str | None = None
    """The last of these turns with control tokens in its reply that the prompt, a text, does not show."""

    @property
    def id(self) -> str | None:
        return self.turn.id if self.turn is not None else None

    @property
    def shared(self) -> int:
        """How many prompts and replies it covers."""
        return self.turn.call.reply_index + 1 if self.turn is not None else 0


def reach(tree: Tree, prompt: Text | Tokens, spelling: Spelling) -> tuple[Reach, tuple[Note, ...]]:
    """The deepest; of several that are equally deep the latest, with a note."""
    ways = list(_ways(tree, prompt, spelling))
    end = max(way.end for way in ways)
    deepest = {way.id: way for way in ways if way.end == end}
    latest = deepest[next((id for id in reversed(tree.turns) if id in deepest), None)]
    notes = []
    if len(deepest) > 1:
        notes.append(Note(NoteKind.AMBIGUOUS_MATCH, f"several turns end here; {latest.id} is taken"))
    if latest.silent is not None:
        notes.append(Note(NoteKind.STOP_KEPT, f"of {latest.silent}"))
    return latest, tuple(notes)


def fork_of(tree: Tree, prompt: Text | Tokens, found: Reach, spelling: Spelling) -> Fork | None:
    """Asked when the call is committed, as that of a conversation is: its equals may have been recorded meanwhile."""
    reasons = {reason for call in tree.children(found.id) for reason in _partings(tree, call, prompt, found, spelling)}
    for reason, at, detail in (
        (ForkReason.RESAMPLED, found.shared, "the same prompt was sent before"),
        (ForkReason.ASSISTANT_EDITED, found.shared + 1, "the prompt changes what was sampled"),
        (ForkReason.HISTORY_SHORTENED, found.shared, "it ends where a recorded prompt went on"),
        (ForkReason.BRIDGE_REFUSED, found.shared + 1, "the prompt leaves out what was sampled of a stop string"),
        (ForkReason.BRANCHED, found.shared, f"{found.id} was continued before"),
    ):
        if reason in reasons:
            return Fork(reason, at, detail) if found.turn or reason is not ForkReason.BRANCHED else NEW
    return None


NEW = Fork(ForkReason.NEW_CONVERSATION, 0)


def _ways(tree: Tree, prompt: Text | Tokens, spelling: Spelling) -> Iterator[Reach]:
    """Every turn that the prompt covers whole, and how far that is; not by recursion: rollouts have thousands."""
    waiting = [Reach()]
    while waiting:
        way = waiting.pop()
        yield way
        for call in tree.children(way.id):
            behind = _behind_context(call, prompt, way.end, spelling)
            for turn in tree.choices(call) if behind is not None else ():
                covered = _behind_reply(turn, prompt, behind or 0, spelling)
                if isinstance(covered, _Covered):
                    waiting.append(Reach(turn, covered.end, way.silent if covered.shown else turn.id))


def _partings(tree: Tree, call: Call, prompt: Text | Tokens, found: Reach, spelling: Spelling) -> Iterator[ForkReason]:
    """Where the prompt leaves each of the ways that lead on through a call."""
    behind, length = _behind_context(call, prompt, found.end, spelling), _length(prompt)
    if behind is None:
        shortened = found.end < length and _ends_within(call, prompt, found.end)
        yield ForkReason.HISTORY_SHORTENED if shortened else ForkReason.BRANCHED
    elif behind == length:
        yield ForkReason.RESAMPLED
    else:
        ends = (_behind_reply(turn, prompt, behind, spelling) for turn in tree.choices(call))
        said_nothing = behind == found.end  # so that whatever follows is the caller's, and no change of the reply
        for end in ends:
            if isinstance(end, ForkReason):
                yield ForkReason.BRANCHED if said_nothing and end is ForkReason.ASSISTANT_EDITED else end


# ----------------------------------------------------------------------------------------------- contexts and replies


def _length(prompt: Text | Tokens) -> int:
    return len(prompt.text) if isinstance(prompt, Text) else len(prompt.ids)


def _behind_context(call: Call, prompt: Text | Tokens, at: int, spelling: Spelling) -> int | None:
    """Where the prompt goes on behind a call's context; None: it does not hold all of it."""
    if isinstance(prompt, Tokens):
        end = at + len(call.context)
        return end if np.array_equal(prompt.ids[at:end], call.context) else None
    for start in (at, *_behind_opening(call, prompt.text, spelling)):
        end = start + call.text_chars
        if end <= len(prompt.text) and text_hash(prompt.text[start:end]) == call.text_hash:
            return end
    return None


def _behind_opening(call: Call, text: str, spelling: Spelling) -> Iterator[int]:
    """A text may spell the BOS that was put before another, and that its caller has read back from ids."""
    opening = spelling.encode("", special=True) if call.parent is None else []
    if opening and call.context[: len(opening)].tolist() == opening:
        spelled = spelling.decode(opening)
        if text.startswith(spelled):
            yield len(spelled)


def _ends_within(call: Call, prompt: Text | Tokens, at: int) -> bool:
    if isinstance(prompt, Tokens):
        rest: Ids = prompt.ids[at:]
        return len(rest) < len(call.context) and np.array_equal(rest, call.context[: len(rest)])
    new = call.messages[-1] if call.messages else None
    return new is not None and new.role == PROMPT_ROLE and (new.content or "").startswith(prompt.text[at:])


class _Covered(Value):
    """A reply that the prompt holds."""

    end: int
    shown: bool = True
    """False: control tokens of it are in the path, and not in the prompt."""


def _behind_reply(turn: Turn, prompt: Text | Tokens, at: int, spelling: Spelling) -> _Covered | ForkReason:
    """Where the prompt goes on behind a reply, or why it does not."""
    if isinstance(prompt, Text):
        return _behind_text(turn, prompt.text, at, spelling)
    sampled = turn.sampled
    end = at + len(sampled)
    if np.array_equal(prompt.ids[at:end], sampled):
        return _Covered(end)
    rest: Ids = prompt.ids[at:]
    begun = len(rest) < len(sampled) and np.array_equal(rest, sampled[: len(rest)])
    return ForkReason.HISTORY_SHORTENED if begun else ForkReason.ASSISTANT_EDITED


def _behind_text(turn: Turn, text: str, at: int, spelling: Spelling) -> _Covered | ForkReason:
    ids = turn.sampled.tolist()
    said = len(ids)
    while said and ids[said - 1] in spelling.special:
        said -= 1
    plain = spelling.special.isdisjoint(ids[:said])
    shown, rest = _spoken(turn, ids, said, spelling)
    if text.startswith(shown, at):
        end = at + len(shown)
        if text.startswith(rest, end):
            return _Covered(end + len(rest), plain)
        return _Covered(end, False) if rest == spelling.decode(ids[said:]) else ForkReason.BRIDGE_REFUSED
    if not plain and text.startswith(spelled := spelling.decode(ids), at):
        return _Covered(at + len(spelled))
    return ForkReason.HISTORY_SHORTENED if shown.startswith(text[at:]) else ForkReason.ASSISTANT_EDITED


def _spoken(turn: Turn, ids: Sequence[int], said: int, spelling: Spelling) -> tuple[str, str]:
    """What a caller was shown of a reply, and the rest of what its ids spell; behind `said` of them nothing is said.

    A caller of Completions was shown the content. Of a reply in a conversation, which a prompt may hold as the template
    writes it, everything counts but the tokens that end it.
    """
    if turn.call.messages and turn.call.messages[-1].role == PROMPT_ROLE:
        return turn.reply.content or "", turn.ending.rest
    return spelling.decode(ids[:said]), spelling.decode(ids[said:])
