"""What every test stands on: the tree under test, hypothesis' settings, and the real tokenizers."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

import stenograph

ROOT = Path(__file__).resolve().parents[1]
TOKENIZERS = ROOT.parent / "shared" / "tokenizers"
NO_TOKENIZERS = "no ../shared/tokenizers beside the repository"
REQUIRE_ALL = "STENOGRAPH_REQUIRE_ALL"
"""Set in CI: there whatever a test needs is present, so one that skips for want of it has not looked properly."""
REVIEWED = "(listed, reviewed)"
"""At the end of the reason of a skip that is meant: what a template or an engine cannot do at all."""

hypothesis.settings.register_profile("moderate", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("soak", max_examples=2000, deadline=None, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "moderate")


def tokenizer_folders() -> dict[str, Path]:
    """By name; empty on a machine that has none."""
    return {path.parent.name: path.parent for path in sorted(TOKENIZERS.glob("*/tokenizer.json"))}


def pytest_configure() -> None:
    """Tests in a copy of the tree must never pass on another tree's code: an editable install points at one only."""
    package = Path(str(stenograph.__file__)).resolve()
    if not package.is_relative_to(ROOT / "src"):
        raise pytest.UsageError(f"these tests are for {ROOT / 'src'}, but `stenograph` is {package.parent}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `tokenizer_folder` runs once for each real tokenizer."""
    if "tokenizer_folder" in metafunc.fixturenames:
        folders = tokenizer_folders()
        absent = pytest.param(None, marks=pytest.mark.skip(reason=NO_TOKENIZERS), id="none")
        metafunc.parametrize("tokenizer_folder", list(folders.values()) or [absent], ids=list(folders) or None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests run side by side, those of one file stay together, for what they share is loaded once; and all that
    drive real engines do, right in `live/`, for one that pauses an engine would hold up the others."""
    if config.pluginmanager.hasplugin("dsession") or hasattr(config, "workerinput"):
        for item in items:
            place = item.path.relative_to(ROOT / "tests")
            group = "live" if place.parent.name == "live" else str(place)
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def shared_tokenizers() -> dict[str, Path]:
    return tokenizer_folders() or pytest.skip(NO_TOKENIZERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    expected_failure = hasattr(report, "wasxfail")
    if report.skipped and os.environ.get(REQUIRE_ALL) and not expected_failure and REVIEWED not in reason:
        report.outcome = "failed"
    return report
