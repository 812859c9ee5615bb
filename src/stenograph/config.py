"""Settings of a gateway: frozen, from flags and a TOML file by one loader. A flag wins over the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from stenograph.core import ID, IDS, Framing, Positions
from stenograph.errors import ConfigError

KINDS: tuple[str, ...] = ("vllm", "sglang", "llamacpp", "local", "torch", "scripted")
"""What `--engine` takes today."""
LISTS = ("engine", "model-alias", "teacher")
MAX_BODY_BYTES = 64 << 20
JSON: TypeAlias = Any
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
"""Not empty: `--admin-key "$KEY"` with no KEY set must not open the door, nor `--host ""` every interface."""
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]


class EngineSpec(msgspec.Struct, frozen=True):
    kind: str
    where: str
    """A server's root, a file, a folder, or a bundled model's name, as the kind has it."""


class TeacherSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One `[[teacher]]` of the TOML file."""

    engine: Text
    """`KIND=WHERE`, of a kind that can score."""
    name: Annotated[str, Meta(pattern=ID)] = "teacher"
    tokenizer: Text | None = None
    """A folder or a hub name. None: what its engine says or brings."""
    weight: Annotated[float, Meta(gt=0, le=1e9)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 1
    """0: only the logprobs of the tokens that are there."""
    positions: Positions = "sampled"
    in_flight: Annotated[int, Meta(ge=1)] | None = None
    """Sequences that its engine scores at once. None: as suits its kind."""
    system: str | None = None
    """This and the next two put it into another context, as `core.Framing` has them."""
    hint: str | None = None
    tools: tuple[dict[str, JSON], ...] | None = None

    @property
    def framing(self) -> Framing | None:
        framing = Framing(self.system, self.hint, self.tools)
        return None if framing == Framing() else framing


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Each field is a flag of `serve` and a key of the TOML file."""

    engine: tuple[str, ...] = ()
    """`KIND=WHERE`, one or more."""
    model: Text | None = None
    """The name by which agents ask for it. None: what the engine says."""
    model_alias: tuple[Text, ...] = ()
    tokenizer: Text | None = None
    """A folder or a hub name. None: what the engine says or brings."""
    host: Text = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 9000
    """0: a free one."""
    store: Text = "stenograph-store"
    """A folder for the SQLite file; `:memory:` keeps nothing."""
    history: Literal["template", "verbatim"] = "template"
    reasoning: Literal["restore", "strict"] = "restore"
    tool_parser: str = "auto"
    reasoning_parser: str = "auto"
    chat_template: Text | None = None
    """A Jinja file, in place of the tokenizer's own template."""
    chat_template_kwargs: dict[str, JSON] = {}
    """Arguments for the template of every call; a call's own win."""
    teacher: tuple[TeacherSpec | Text, ...] = ()
    """`NAME=KIND=WHERE`, or all that a `[[teacher]]` can say."""
    in_flight: Annotated[int, Meta(ge=1)] = 256
    """Choices that one engine samples at once; more wait, sessions in turn."""
    default_session: Annotated[str, Meta(pattern=ID)] | None = None
    grace: Seconds = 5.0
    """Seconds that a call goes on after its caller went away."""
    heartbeat: Seconds = 0.0
    """Seconds of silence after which a JSON answer that is under way gets white space in front; 0: never. For tunnels
    that cut idle connections."""
    admin_key: Text | None = None
    max_open_sessions: Annotated[int, Meta(ge=1)] = 100_000
    max_calls: Annotated[int, Meta(ge=1)] = 8192
    """Model calls under way at once, waiting ones too."""
    max_body_bytes: Annotated[int, Meta(ge=1)] = MAX_BODY_BYTES

    def engines(self) -> tuple[EngineSpec, ...]:
        return tuple(engine_spec(text) for text in self.engine)

    def teachers(self) -> tuple[TeacherSpec, ...]:
        specs = tuple(teacher_spec(one) if isinstance(one, str) else one for one in self.teacher)
        names = [spec.name for spec in specs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ConfigError(f"--teacher: two are called {twice}: name them, NAME=KIND=WHERE")
        for spec in specs:
            engine_spec(spec.engine, "--teacher")
        return specs


def teacher_spec(text: str) -> TeacherSpec:
    """`NAME=KIND=WHERE`, or `KIND=WHERE` where there is but one."""
    name, _, engine = text.partition("=")
    if name in KINDS and engine.partition("=")[0] not in KINDS:
        return TeacherSpec(engine=text)
    try:
        return msgspec.convert({"name": name, "engine": engine}, TeacherSpec)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--teacher {text}: expected NAME=KIND=WHERE; in a name, {IDS}") from error


def engine_spec(text: str, flag: str = "--engine") -> EngineSpec:
    kind, _, where = text.partition("=")
    if kind not in KINDS or not (where or kind == "scripted"):
        known = ", ".join(KINDS)
        raise ConfigError(
            f"{flag} {text}: expected KIND=WHERE, such as vllm=http://127.0.0.1:8000; KIND is one of {known}"
        )
    return EngineSpec(kind, where)


def from_file(path: Path) -> dict[str, JSON]:
    """The keys that a file sets. A list of one may be written without brackets."""
    try:
        values: dict[str, JSON] = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"--config {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path}: {error}") from error
    keys = _dashed(values)
    return {key: [value] if key in LISTS and isinstance(value, str | dict) else value for key, value in keys.items()}


def settings(values: dict[str, JSON]) -> Settings:
    """Of a teacher's own keys either spelling is taken, too."""
    teachers = values.get("teacher")
    if isinstance(teachers, list | tuple):
        values = {**values, "teacher": [_dashed(one) if isinstance(one, dict) else one for one in teachers]}
    try:
        made = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$.")
        problem = problem.replace("Object contains unknown field", "there is no setting")
        problem = IDS if " matching regex " in problem else problem
        raise ConfigError(f"--{place.rstrip('`')}: {problem}" if place else problem) from error
    made.engines()
    made.teachers()
    return made


def _dashed(keys: dict[str, JSON]) -> dict[str, JSON]:
    return {key.replace("_", "-"): value for key, value in keys.items()}
