"""docs/REFERENCE.md against the code, both ways: what exists is named there, and what is named there exists."""

from __future__ import annotations

import argparse
import enum
import re
from typing import Any

import msgspec
import pytest
import starlette.routing
from starlette.applications import Starlette

from stenograph import cli, errors
from stenograph.config import Settings, TeacherSpec
from stenograph.core import Attempt, Fork, ForkReason, Note, NoteKind, Sample, Span, TeacherInfo, Teaching
from stenograph.engine.script import Script
from stenograph.errors import StenographError
from stenograph.gateway import Gateway, Group, Session
from stenograph.integrations.atropos import proxy
from stenograph.integrations.atropos.trajectories import Trajectories
from stenograph.server import app
from stenograph.server.metrics import Metrics
from stenograph.wire import batches, sampling, sessions, tokenize
from stenograph.wire.errors import ErrorDetail
from stenograph.wire.info import EngineView
from tests.conftest import ROOT
from tests.docs.tables import CODE, Table, tables

PAGE = ROOT / "docs" / "REFERENCE.md"
TEXT = PAGE.read_text()
TABLES = tables(PAGE)
UNDER_A_SESSION = "[/s/{session}]"
NOUNS: tuple[Any, ...] = (
    *(Script, Sample, Span, Fork, Note, ErrorDetail, sampling.SamplingFields, Teaching, TeacherInfo, TeacherSpec),
    *(sessions.CreateSession, sessions.Reward, sessions.Finish, sessions.Weights, sessions.SessionFilter),
    *(sessions.SamplesQuery, sessions.SessionOpened, sessions.SessionView, sessions.TurnView, EngineView),
    *(batches.LeaseBatches, batches.Acknowledge, batches.LeasedBatch, batches.BatchSession, batches.Acknowledged),
    *(route.body for route, _ in app.MODEL_CALLS),
    *(tokenize.TokenizeRequest, tokenize.DetokenizeRequest),
)
"""Each has a table, with exactly its fields (but for those of sampling, which have their own)."""
WORDS: tuple[type[enum.Enum], ...] = (ForkReason, NoteKind, Attempt)


def titled(title: str) -> Table:
    """The table whose first column is so called."""
    (found,) = [table for table in TABLES if table.head[0] == title]
    return found


def of_noun(noun: type) -> Table:
    (found,) = [table for table in TABLES if table.head[0].endswith(f"`{noun.__name__}`")]
    return found


def under(heading: str) -> Table:
    (found,) = [table for table in TABLES if table.heading == heading]
    return found


# ----------------------------------------------------------------------------------------------------- command line


def commands() -> dict[str, argparse.ArgumentParser]:
    (choices,) = [action.choices for action in cli._parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(choices)


def test_every_command_has_its_section() -> None:
    headings = re.findall(r"^### `stenograph (\w+)", TEXT, re.MULTILINE)
    assert sorted(headings) == sorted(commands())


@pytest.mark.parametrize("command", commands())
def test_every_flag_of_a_command_is_there_and_no_other(command: str) -> None:
    (heading,) = [table.heading for table in TABLES if table.heading.startswith(f"`stenograph {command}")]
    told = {name.split()[0] for name in under(heading).names}
    taken = {flag for action in commands()[command]._actions for flag in action.option_strings}
    assert told == taken - {"-h", "--help"}


def test_every_key_of_the_file_is_a_flag() -> None:
    flags = {name.split()[0] for name in under("`stenograph serve`").names}
    keys = {field.encode_name for field in msgspec.structs.fields(Settings)}
    assert flags == {f"--{key}" for key in keys} | {"--config"}


def test_every_variable_of_the_environment_is_there_and_none_that_is_not_read() -> None:
    """Those that only a test reads, it explains itself."""
    variable = re.compile(r"\bSTENOGRAPH_[A-Z_]+\b")

    def named(*places: str) -> set[str]:
        sources = [path for place in places for path in (ROOT / place).rglob("*.py")]
        return {name for source in sources for name in variable.findall(source.read_text())}

    assert named("src") <= set(variable.findall(TEXT)) <= named("src", "tests")


# ----------------------------------------------------------------------------------------------------------- routes


def served() -> set[str]:
    def no_desk() -> Any:
        raise AssertionError

    built = app.build(no_desk)
    assert isinstance(built, Starlette)
    routes = [route for route in built.routes if isinstance(route, starlette.routing.Route)]
    assert len(routes) == len(built.routes)
    return {
        f"{method} {route.path.replace(':path', '')}"
        for route in routes
        for method in (route.methods or set()) - {"HEAD"}
    }


def told() -> set[str]:
    rows = [name for table in TABLES if table.head[0] == "call" for name in table.names]
    return {row.replace(UNDER_A_SESSION, prefix) for row in rows for prefix in ("", "/s/{session}")}


def test_every_route_is_there_and_no_other() -> None:
    assert told() == served()


def test_every_call_of_atropos_proxy_is_there_and_no_other() -> None:
    served = {f"{method} {path}" for method, path, _ in proxy.CALLS} | {f"POST {proxy.CHAT}"}
    assert set(titled("call of the proxy").names) == served


def test_every_body_and_answer_of_a_session_call_is_there() -> None:
    for route, _ in app.SESSION_CALLS:
        for noun in (route.body, route.query, route.answer):
            assert noun is None or f"`{noun.__name__}`" in TEXT, noun


def test_every_metric_is_there_and_no_other() -> None:
    served = {metric.name for metric in Metrics()._registry.collect()}
    assert set(titled("metric").names) == served


# ----------------------------------------------------------------------------------------------------------- fields


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_every_field_of_a_noun_is_there_and_no_other(noun: Any) -> None:
    inherited = sampling.SamplingFields.__struct_fields__ if sampling.SamplingFields in noun.__bases__ else ()
    fields = [field.encode_name for field in msgspec.structs.fields(noun) if field.name not in inherited]
    assert sorted(of_noun(noun).names) == sorted(fields)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.__name__)
def test_every_word_of_a_list_is_there_and_no_other(words: type[enum.Enum]) -> None:
    (table,) = [table for table in TABLES if f"(`{words.__name__}`)" in table.head[0]]
    assert sorted(table.names) == sorted(word.value for word in words)


def test_no_table_speaks_of_a_noun_that_is_not_there() -> None:
    named = {CODE.findall(table.head[0])[0] for table in TABLES if " of `" in table.head[0]}
    assert named == {noun.__name__ for noun in NOUNS}


# ----------------------------------------------------------------------------------------------------------- errors


def kinds() -> list[type[StenographError]]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StenographError)]
    return [kind for kind in found if kind not in (StenographError, errors.ConfigError)]


def test_every_error_is_there_as_it_is() -> None:
    rows = {tuple(cell.strip("`") for cell in row) for row in titled("error").rows}
    assert rows == {(kind.__name__, str(kind.status), kind.type, kind.code or "") for kind in kinds()}


def test_every_code_is_there() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    codes = re.findall(r'\bcode(?:: str \| None)? ?= ?"(\w+)"', source)
    assert set(codes) <= set(re.findall(r"`(\w+)`", TEXT))


# ----------------------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize("noun", [Gateway, Session, Group, Trajectories])
def test_every_public_name_of_the_api_is_there_and_no_other(noun: type) -> None:
    (table,) = [table for table in TABLES if table.head[0] == f"of a `{noun.__name__}`"]
    prefix = noun.__name__.lower()
    told = {found[1] for name in table.names if (found := re.match(rf"{prefix}\.(\w+)", name))}
    public = {name for name in vars(noun) if not name.startswith("_")}
    attributes = {Gateway: {"app", "settings"}, Session: {"id", "api_key"}, Group: {"leased"}}
    assert told == public | attributes.get(noun, set())
