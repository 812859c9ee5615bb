"""The nouns. Start reading here.

A *session* is one rollout. An agent's call arrives as an `Ask`; what the engine is sent is a `Request`; what comes
back is a stream of `Delta`s; what is kept is a `Call` (the new context, once) with its `Turn`s (one per choice: the
sampled tokens). Turns form a tree, and a `Sample` is one path of it, root to leaf, ready for a trainer.

Everything here is a value: frozen, without I/O, safe to hand across threads and to write to disk.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, dataclass_transform

import msgspec
import numpy as np
from numpy.typing import NDArray

JSON: TypeAlias = Any
"""A JSON value. `Any`, because a recursive alias would have to be re-proved at every protocol's door."""
Ids: TypeAlias = NDArray[np.int32]
Logprobs: TypeAlias = NDArray[np.float32]

Role: TypeAlias = Literal["train", "eval", "judge"]
Protocol: TypeAlias = Literal["chat", "completions", "responses", "messages", "generate"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "abort"]
EngineFinish: TypeAlias = Literal["stop", "length", "abort"]
"""How an engine may end a choice. `tool_calls` is ours: a `stop` whose reply parsed to calls."""
Truncated: TypeAlias = Literal["length", "context", "budget", "aborted"]
"""How a branch's last turn ended early."""
LogprobKind: TypeAlias = Literal["raw", "temperature", "processed"]
"""Of which distribution an engine's logprobs are: before temperature; after it; after top-k, top-p and min-p too."""
VersionSource: TypeAlias = Literal["engine", "caller"]


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True):
    """Base of every noun. (Type checkers don't see by themselves that a frozen Struct's subclasses are frozen too.)"""


# ---------------------------------------------------------------------------------------------------- conversations


class ToolCall(Value, gc=False):
    id: str
    name: str
    arguments: dict[str, JSON] | str
    """The parsed object; text only where it is not one (kept as it was, never mended)."""
    text: str | None = None
    """The arguments as they were written, by the model or by the caller; None where they came as an object."""


class Message(Value, gc=False):
    """One message, whatever protocol it came by. Text parts are joined; what a template cannot see is not here."""

    role: str
    content: str | None = None
    """None where there is only a tool call; templates are given ''."""
    reasoning: str | None = None
    """None: the caller did not send any (which is not the same as sending '')."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


class Conversation(Value, tag="conversation"):
    messages: tuple[Message, ...]
    tools: tuple[dict[str, JSON], ...] = ()
    """In the OpenAI shape, `{"type": "function", "function": {…}}`, as templates expect them."""
    template_arguments: dict[str, JSON] = {}


class Text(Value, tag="text"):
    """A prompt that no template writes: markers in it count."""

    text: str


class Tokens(Value, tag="tokens"):
    """A prompt in the engine's own terms."""

    ids: Ids


ID = r"^(?!\.{1,2}$)[A-Za-z0-9._:-]{1,128}$(?!\n)"
"""Of sessions, groups and turns: it stands in paths, so `.` and `..`, which clients resolve away, are none."""
IDS = "expected 1 to 128 characters of A-Z a-z 0-9 . _ : - (and neither . nor ..)"

PROMPT_ROLE = "prompt"
"""Of the message by which the record holds what was new in a `Text` or in `Tokens`. No caller can send that role."""


def text_hash(text: str) -> str:
    """Names the text that some context encodes; see `Call.text_hash`."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


MOST_NESTED = 100
"""Levels of lists and objects in tools, arguments and calls. Nobody's are a tenth as deep; but a caller may send, and a
model may say, a thousand brackets, and templates and hashes walk values by recursion."""


def too_nested(value: JSON) -> bool:
    level = [value]
    for _ in range(MOST_NESTED):
        lists = [one for one in level if isinstance(one, list | tuple)]
        objects = [one.values() for one in level if isinstance(one, Mapping)]
        level = [inner for one in (*lists, *objects) for inner in one]
        if not level:
            return False
    return True


# --------------------------------------------------------------------------------------------------------- sampling


GuideKind: TypeAlias = Literal["json", "object", "regex", "choice", "grammar", "tag"]


class Guide(Value):
    """A form that a reply is held to while it is sampled: tokens under it are marked `constrained`."""

    kind: GuideKind
    """`json`: a JSON schema; `object`: any JSON object; `choice`: one of some texts; `grammar`: EBNF as the engine
    takes it; `tag`: a structural tag of xgrammar's."""
    value: JSON = None


class Sampling(Value):
    """Every parameter that changes what is sampled. The defaults are neutral, whatever the model's own config says."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0: off."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    max_tokens: int | None = None
    """None in an `Ask`: what is left of context and budget. Always a number in a `Request`."""
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logit_bias: dict[int, float] = {}
    guide: Guide | None = None
    """What the engine's guided decoding holds the reply to."""

    def unusual(self) -> tuple[str, ...]:
        """The names of the parameters that differ from neutral: what an engine has to support to serve this."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) != getattr(NEUTRAL, name))


NEUTRAL = Sampling()


class Reference(Value, kw_only=True):
    """A part of an earlier reply that a caller names instead of sending it."""

    item: str
    """As the caller names it."""
    turn: str
    part: Literal["reasoning", "content", "call"]
    place: int = 0
    """Which of the reply's calls."""
    at: int
    """Index of the message that it is a part of."""


class Ask(Value):
    """A caller's call, decoded: the same whatever protocol it came by."""

    protocol: Protocol
    model: str
    prompt: Conversation | Text | Tokens
    sampling: Sampling
    previous: str | None = None
    """The turn that the messages follow, where the caller names it and does not repeat the past (Responses)."""
    instructed: bool = False
    """The first message is this call's own instructions: a later call that names this one does not inherit it."""
    references: tuple[Reference, ...] = ()
    """What the record has to fill in."""
    named: frozenset[str] = frozenset()
    """Turns that the caller names by the ids it echoes: of several that said the same, these are meant."""
    given: frozenset[str] = frozenset()
    """The sampling parameters that the caller set itself; a session's defaults fill the others."""
    n: int = 1
    top_logprobs: int = 0
    tool_choice: Literal["auto", "none", "required"] = "auto"
    """`none`: the tools stay in the prompt, and what reads like a call is content. `required`: the reply is held to one
    or more calls."""
    tool: str | None = None
    """With `required`: which one; None: any."""
    single_call: bool = False
    """The reply is held to no more than one call."""
    guide_field: str = "response_format"
    """By which field the caller asked for its guide: where there can be none, it is the one at fault."""
    notes: tuple[Note, ...] = ()
    """What the codec set aside: `field_ignored`, `tool_ignored`."""
    labels: dict[str, JSON] = {}
    """`user`, `metadata`, `store`: kept, without effect."""


# ------------------------------------------------------------------------------------------------- forks and notes


class ForkReason(enum.StrEnum):
    """Why a turn does not extend the deepest turn the caller could have meant."""

    NEW_CONVERSATION = "new_conversation"
    ASSISTANT_EDITED = "assistant_edited"
    HISTORY_EDITED = "history_edited"
    HISTORY_SHORTENED = "history_shortened"
    TOOLS_CHANGED = "tools_changed"
    TEMPLATE_ARGUMENTS_CHANGED = "template_arguments_changed"
    TEMPLATE_REWROTE_HISTORY = "template_rewrote_history"
    BRIDGE_REFUSED = "bridge_refused"
    RESAMPLED = "resampled"
    BRANCHED = "branched"


class Fork(Value):
    reason: ForkReason
    at: int
    """Index of the first message that differs."""
    detail: str = ""


class NoteKind(enum.StrEnum):
    """Every tolerance that was used, and everything that was left out, to serve a call."""

    REASONING_RESTORED = "reasoning_restored"
    WHITESPACE_IGNORED = "whitespace_ignored"
    ARGUMENTS_REFORMATTED = "arguments_reformatted"
    AMBIGUOUS_MATCH = "ambiguous_match"
    TOOL_CALL_UNPARSED = "tool_call_unparsed"
    ENGINE_MOVED = "engine_moved"
    SAMPLING_FORCED = "sampling_forced"
    PREFILL = "prefill"
    STOP_KEPT = "stop_kept"
    FIELD_IGNORED = "field_ignored"
    TOOL_IGNORED = "tool_ignored"


class Note(Value):
    kind: NoteKind
    detail: str = ""


# ----------------------------------------------------------------------------------------------- to and from engines


class TopLogprob(Value):
    token_id: int
    logprob: float


class Request(Value):
    """What an engine is sent. Token ids only: no engine ever sees text."""

    id: str
    """Unique; the engine's own request id, so that its log and ours can be joined."""
    session_id: str
    prompt: Ids
    sampling: Sampling
    """Complete: `max_tokens` is set, and `stop_token_ids` hold the template's own close of an assistant turn."""
    n: int = 1
    top_logprobs: int = 0
    """How many alternatives to report beside each sampled token; 0: none."""
    engine: str | None = None
    """The member of the pool that sampled the session's latest turn: its prefix cache is there."""
    path: int = 0
    """How many ids of the prompt are a path on record: what engines tell of a prompt's tokens is not wanted again."""


class EngineInfo(Value):
    """What an engine says of itself once it is connected."""

    name: str
    """`vllm-0`: kind and place in the pool."""
    kind: str
    model: str
    max_model_len: int
    logprob_kind: LogprobKind
    supports: frozenset[str]
    """The fields of `Sampling` that this engine honours; any other that is not neutral is refused."""
    guides: frozenset[GuideKind] = frozenset()
    """Of the field `guide`: which kinds."""
    max_top_logprobs: int = 0
    vocab_size: int | None = None
    """Ids at or above it are never sent. None: the engine does not say, the tokenizer's own bound is used."""


class VersionRun(Value):
    """So many tokens in a row, sampled under one version of the weights."""

    version: str
    tokens: int


class Finish(Value):
    reason: EngineFinish
    stop: int | str | None = None
    """The id or the string that ended it; None for the model's own end of sequence, or a length."""


class Delta(Value):
    """Some more tokens of one choice. Lengths agree: the constructor refuses anything else (law 7)."""

    choice: int
    ids: Ids
    logprobs: Logprobs
    """Of each id, as the engine reported it; 0.0 is legal, anything positive or non-finite is not."""
    top: tuple[tuple[TopLogprob, ...], ...] | None = None
    """One row an id, best first; None where it was not asked for."""
    finish: Finish | None = None
    """On the last delta of the choice."""
    versions: tuple[VersionRun, ...] = ()
    """Under which weights the choice's latest tokens were sampled, oldest first, where the engine says so itself. The
    last run ends with this delta's last id; together they may reach back behind its first (vLLM speaks at the end)."""
    cached_tokens: int | None = None
    """How much of the prompt the engine had in its cache, where it says so."""
    support: tuple[Ids, ...] | None = None
    """One row an id: the tokens that truncation left to draw from, where the engine says so."""
    experts: NDArray[Any] | None = None
    """Which experts each token was routed to, a row a token, from the request's path on up to the last but one so far
    (the last is sampled, and not computed yet), where the engine says so."""
    by: EngineInfo | None = None
    """Who sampled these ids: written by the pool, which knows."""

    def __post_init__(self) -> None:
        rows = (self.logprobs, *(told for told in (self.top, self.support) if told is not None))
        if any(len(told) != len(self.ids) for told in rows):
            raise ValueError(f"{len(self.ids)} ids, and {[len(told) for told in rows]} of what was told of them")


# ------------------------------------------------------------------------------------------------ what is answered


class CallDelta(Value):
    """Some more of one tool call of a reply."""

    index: int
    """Which of the reply's calls."""
    id: str | None = None
    """With the call's first delta only, like `name`."""
    name: str | None = None
    arguments: str = ""


class Opened(Value):
    """The first event of an answer: the prompt stands, nothing is sampled yet."""

    call_id: str
    turn_ids: tuple[str, ...]
    """One a choice, allocated before generation."""
    prompt: Ids
    model: str
    """As the caller named it."""
    created_at: float


class Piece(Value):
    """More of one choice: the ids, and the text that they complete (which may be none: never half a character)."""

    choice: int
    ids: Ids
    logprobs: Logprobs
    top: tuple[tuple[TopLogprob, ...], ...] | None = None
    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class Closed(Value):
    """A choice is complete, and durable (law 5): emitted after commit only."""

    choice: int
    finish_reason: FinishReason
    stop_reason: int | str | None = None
    versions: tuple[VersionRun, ...] = ()
    """Under which weights all of it was sampled, in order; empty where nobody named any."""


class Done(Value):
    """The last event."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None


Event: TypeAlias = Opened | Piece | Closed | Done


# ------------------------------------------------------------------------------------------------------- the record


class Part(Value):
    """Tokens that were sampled in one go, under one version of the weights."""

    ids: Ids
    logprobs: Logprobs
    engine: str
    engine_kind: str
    logprob_kind: LogprobKind
    weight_version: str | None = None
    step: int | None = None
    version_source: VersionSource | None = None
    sidecars: dict[str, str] = {}
    """Large evidence, by kind: the name under which the store has it (see `sidecar`)."""

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.logprobs):
            raise ValueError(f"a part of {len(self.ids)} ids has {len(self.logprobs)} logprobs")


class Call(Value):
    """What one call added: the context tokens behind its parent, kept once however many choices it has."""

    id: str
    session_id: str
    parent: str | None
    """The turn whose end the context continues, token by token; None at the root."""
    after: str | None
    """The deepest turn the caller's messages continue. It differs from `parent` where the prompt could not."""
    shared: int
    """How many of the caller's messages `after` covers; `messages` are the ones that follow."""
    context: Ids
    """The new ids: path(parent) + context is exactly what the engine was sent."""
    text_chars: int
    """Length of the template's text that `context` encodes; with its hash, what later renders are compared with."""
    text_hash: str
    inert: bool
    """No text in this call's messages, or in any before it on the path, changes what the template writes around it."""
    messages: tuple[Message, ...]
    tools_hash: str
    arguments_hash: str
    protocol: Protocol
    model: str
    """As the caller named it."""
    sampling: Sampling
    """As it was sent."""
    own_stops: tuple[int | str, ...]
    """Those of its stops that the caller did not ask for: the template's own closes of a turn."""
    n: int
    request_id: str
    body_hash: str
    idempotency_key: str | None
    template_hash: str
    tokenizer_hash: str
    created_at: float
    """Unix seconds, when the call arrived."""
    first_token_at: float | None
    finished_at: float
    fork: Fork | None = None
    notes: tuple[Note, ...] = ()
    labels: dict[str, JSON] = {}
    cached_tokens: int | None = None
    constrained: bool = False
    instructed: bool = False
    """As in `Ask`."""

    @property
    def reply_index(self) -> int:
        """Of the conversation's messages, the place of what its turns say."""
        return self.shared + len(self.messages)


class Ending(Value):
    """How the text of a reply ends: what the bridge has to know to go on behind it."""

    rest: str = ""
    """The sampled text behind the last thing said: white space, a closing marker, a stop token's own spelling."""
    calls_closed: bool = False
    """Text was said behind the calls, so what closes them has been sampled before it."""


class Turn(Value):
    """One choice of one call: a node of the tree. Committed, it never changes (law 3)."""

    id: str
    call: Call
    choice: int
    parts: tuple[Part, ...]
    reply: Message
    """What the sampled tokens parse to: what the caller was answered."""
    finish_reason: FinishReason
    stop_reason: int | str | None = None
    limit: Literal["context", "budget"] | None = None
    """What was full, where a `length` was not the caller's own `max_tokens`; None everywhere else."""
    ending: Ending = Ending()
    notes: tuple[Note, ...] = ()
    """Of this choice alone (`tool_call_unparsed`); those of the call are on the call."""
    top: tuple[tuple[TopLogprob, ...], ...] | None = None
    written: Message | None = None
    """The reply as templates are shown it, where the caller was told of a call that was never finished: its text is
    content there. None: as it was answered."""

    @property
    def sampled_tokens(self) -> int:
        return sum(len(part.ids) for part in self.parts)

    @property
    def sampled(self) -> Ids:
        if len(self.parts) == 1:
            return self.parts[0].ids
        return np.concatenate([part.ids for part in self.parts]) if self.parts else np.zeros(0, np.int32)

    @property
    def logprobs(self) -> Logprobs:
        return np.concatenate([part.logprobs for part in self.parts]) if self.parts else np.zeros(0, np.float32)


class State(enum.StrEnum):
    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Attempt(enum.StrEnum):
    """Why a call left no turn."""

    DISCONNECTED = "disconnected"
    CONTEXT_OVERFLOW = "context_overflow"
    ENGINE_ERROR = "engine_error"
    REFUSED = "refused"
    """The caller's fault: the body, the template's own refusal, a budget that is used up."""
    GATEWAY_ERROR = "gateway_error"
    """Ours: the turn could not be made durable, or a bug."""


class Budget(Value):
    turns: int | None = None
    tokens: int | None = None
    """Sampled tokens."""


class SessionSampling(Value):
    defaults: dict[str, JSON] = {}
    """Fill what the agent leaves out."""
    force: dict[str, JSON] = {}
    """Override what it sends, with a note."""


class SessionFacts(Value):
    """All of a session but its tree: small, and rewritten whole at each change."""

    id: str
    key_hash: str
    """SHA-256 of the session's api_key; the key itself is never kept."""
    created_at: float
    touched_at: float
    group: str | None = None
    group_size: int | None = None
    role: Role = "train"
    state: State = State.OPEN
    history: Literal["template", "verbatim"] | None = None
    """None: the gateway's own setting."""
    reasoning: Literal["restore", "strict"] | None = None
    sampling: SessionSampling = SessionSampling()
    budget: Budget = Budget()
    ttl: float | None = None
    """Seconds without a call after which the session expires."""
    metadata: dict[str, JSON] = {}
    reward: float | None = None
    rewards: dict[str, float | None] = {}
    """By turn id."""
    scores: dict[str, float] = {}
    reward_metadata: dict[str, JSON] = {}
    reward_revision: int = 0
    error: str | None = None
    attempts: dict[Attempt, int] = {}


# -------------------------------------------------------------------------------------------------- groups, delivered


class BatchState(enum.StrEnum):
    WAITING = "waiting"
    LEASED = "leased"
    """Until its lease runs out; then it is as good as waiting."""
    ACKNOWLEDGED = "acknowledged"
    DROPPED = "dropped"
    """None of its sessions could be delivered any more."""


class Batch(Value, kw_only=True):
    """A group that is complete, on its way to a trainer. A group of the next epoch, of the same name, is another."""

    id: str
    group: str
    size: int
    """The sessions' `group_size`: so many ended, well or not."""
    place: int
    """In the order in which groups became complete."""
    sessions: tuple[str, ...]
    """In the order in which they ended; less those that were deleted, or became too old."""
    completed_at: float
    state: BatchState = BatchState.WAITING
    lease: str | None = None
    """Of the latest delivery: whoever names it may acknowledge."""
    leased_until: float | None = None
    deliveries: int = 0
    stale: tuple[str, ...] = ()
    """Sessions that were too old when a trainer came for it: dropped for good, for weights only move on."""


class WeightsSaid(Value):
    """A trainer's word on which weights the engines hold from then on."""

    version: str
    step: int | None = None


# ---------------------------------------------------------------------------------------------------------- teachers


Positions: TypeAlias = Literal["sampled", "all"]
"""Of which tokens a teacher is asked: of those that were sampled, or of the context too."""


class Framing(Value):
    """Another beginning of the sequence, which only the teacher sees. In its texts `$name` is filled in from the
    session's metadata."""

    system: str | None = None
    """The instructions, in place of those that the student had; None: those."""
    hint: str | None = None
    """Behind the last message of the user."""
    tools: tuple[dict[str, JSON], ...] | None = None
    """In place of the student's; None: those."""


class Teacher(Value, kw_only=True):
    """Who scores samples, and of what: as it stood when it last did."""

    name: str
    model: str
    """As its engine calls it."""
    weight: float
    """Its share of a loss over several teachers."""
    top_k: int
    positions: Positions
    framing: Framing | None = None
    """None: it reads what the student read."""
    template_hash: str = ""
    """Of the template that writes the framing; '' where there is none."""


class Lesson(Value, kw_only=True):
    """What a teacher says of some tokens in a row, given all before them; or why it says nothing of a sequence."""

    key: str
    """Names the teacher, all ids up to the last of these tokens, and the first of them."""
    session_id: str
    """Whose sample it was scored for."""
    top_k: int
    token_ids: Ids
    """`top_k` of each token, best first, one token's behind the other's."""
    logprobs: Logprobs
    """Of those."""
    token_logprobs: Logprobs
    """Of the tokens themselves."""
    error: str | None = None
    also: tuple[str, ...] = ()
    """Other sessions that have the same tokens: it is forgotten with the last of them."""

    def __post_init__(self) -> None:
        wanted = self.top_k * len(self.token_logprobs)
        if len(self.token_ids) != wanted or len(self.logprobs) != wanted:
            told = f"{len(self.token_ids)} ids and {len(self.logprobs)} logprobs"
            raise ValueError(f"{told} where {len(self.token_logprobs)} tokens have {self.top_k} each")


class Teaching(Value, kw_only=True):
    """A teacher's word on a sample. Row i is of the distribution that predicts token i."""

    top_k: int
    token_ids: Ids
    """`[token][k]`, best first; -1 where nothing is known: at the first token, and where nobody asked."""
    logprobs: Logprobs
    """`[token][k]`; 0.0 where nothing is known."""
    token_logprobs: Logprobs
    """Of the sample's own tokens; 0.0 where nothing is known."""

    def __post_init__(self) -> None:
        rows = (len(self.token_logprobs), self.top_k)
        if self.token_logprobs.ndim != 1 or self.token_ids.shape != rows or self.logprobs.shape != rows:
            shapes = [self.token_ids.shape, self.logprobs.shape, self.token_logprobs.shape]
            raise ValueError(f"a teaching of {rows} has arrays of {shapes}")


class TeacherInfo(Value, kw_only=True):
    """Who a sample's teacher is."""

    model: str
    weight: float
    error: str | None = None
    """Why the sample has no teaching of it; None where it has."""


# ------------------------------------------------------------------------------------------------------- the sample


class Span(Value):
    """A run of sampled ids of one turn and one part. A sample's spans partition its sampled ids, in order."""

    start: int
    end: int
    """Half open, indices into the sample's arrays."""
    turn_id: str
    choice: int
    part: int
    trained: bool
    weight_version: str | None
    step: int | None
    version_source: VersionSource | None
    model: str
    engine: str
    engine_kind: str
    logprob_kind: LogprobKind
    sampling: dict[str, JSON]
    constrained: bool
    finish_reason: str
    stop_reason: int | str | None
    sidecars: dict[str, str] = {}


class Sample(Value, kw_only=True):
    """One branch of a session, root to leaf: what a trainer is handed (CONTRACT 5)."""

    schema: int = 1
    id: str
    session_id: str
    group: str | None
    group_size: int | None
    role: Role
    branch: int
    branches: int
    main: bool
    leaf_turn_id: str
    tokens: Ids
    sampled: NDArray[np.uint8]
    mask: NDArray[np.uint8]
    logprobs: Logprobs
    spans: tuple[Span, ...]
    reward: float | None
    rewards: Mapping[str, float | None]
    scores: Mapping[str, float]
    reward_revision: int
    status: str
    truncated: Truncated | None
    versions: tuple[str, ...]
    notes: tuple[Note, ...]
    fork: Fork | None
    metadata: Mapping[str, JSON]
    teachers: Mapping[str, Teaching] | msgspec.UnsetType = msgspec.UNSET
    """By name; not there where no teacher was asked for."""
    teacher_info: Mapping[str, TeacherInfo] | msgspec.UnsetType = msgspec.UNSET
    """Of each teacher that was asked for, whether it has a teaching or not."""

    def __post_init__(self) -> None:
        lengths = {len(self.tokens), len(self.sampled), len(self.mask), len(self.logprobs)}
        if len(lengths) != 1:
            raise ValueError(f"tokens, sampled, mask and logprobs differ in length: {sorted(lengths)}")
        for name, teaching in (self.teachers or {}).items():
            if len(teaching.token_logprobs) != len(self.tokens):
                raise ValueError(f"{len(self.tokens)} tokens, and {name} has {len(teaching.token_logprobs)} rows")

    def to_json(self) -> dict[str, JSON]:
        """CONTRACT 5, field by field: lists for arrays, and each float32 as the double of the same value."""
        plain: dict[str, JSON] = msgspec.json.decode(msgspec.json.encode(self, enc_hook=np.ndarray.tolist))
        return plain
