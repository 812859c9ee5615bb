from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.engine.script import Fault, FaultKind, Rule, Script, load
from stenograph.errors import ConfigError

TOML = """
seed = 7
replies = ["Hello.", [5, 6, 7]]
first_delay = 0.5
[[rules]]
when = "weather"
say = "Rain."
[[faults]]
kind = "hang"
call = 2
[[faults]]
kind = "nan"
every = 3
"""
JSON = """{"seed": 7, "replies": ["Hello.", [5, 6, 7]], "first_delay": 0.5, 
"rules": [{"when": "weather", "say": "Rain."}],
"faults": [{"kind": "hang", "call": 2}, {"kind": "nan", "every": 3}]}"""
MEANT = Script(
    seed=7,
    replies=("Hello.", (5, 6, 7)),
    first_delay=0.5,
    rules=(Rule("weather", "Rain."),),
    faults=(Fault(FaultKind.HANG, call=2), Fault(FaultKind.NAN, every=3)),
)


@pytest.mark.parametrize(("name", "text"), [("script.toml", TOML), ("script.json", JSON)])
def test_a_script_is_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert load(tmp_path / name) == MEANT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sed = 7", "unknown field `sed`"),
        ("[[faults]]\nkind = 'hang'\ncall = 1\nwhen = 2", "unknown field `when`"),
        ("[[rules]]\nwhen = '('\nsay = 'x'", "no regular expression"),
        ("[[faults]]\nkind = 'hang'", "either `call` or `every`"),
        ("[[faults]]\nkind = 'hang'\ncall = 1\nevery = 1", "either `call` or `every`"),
        ("[[faults]]\nkind = 'explode'\ncall = 1", "explode"),
        ("cut = 1.5", "<= 1"),
        ("chunk = 0", ">= 1"),
        ("seed = ", "cannot be used"),
    ],
)
def test_an_unusable_script_is_said_to_be(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "script.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load(tmp_path / "script.toml")


def test_a_missing_script_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the script"):
        load(tmp_path / "none.toml")


def test_faults_strike_where_they_are_told_to() -> None:
    struck = [MEANT.fault_of(ordinal) for ordinal in range(6)]
    assert struck == [None, None, FaultKind.HANG, None, None, FaultKind.NAN]
