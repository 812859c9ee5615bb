"""The harness itself, on a toy of one function: every way a mutant can fail to prove anything is told apart."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools import mutants

SOURCE = "def double(x: int) -> int:\n    return x + x\n"
TEST = """
from pathlib import Path

import toy


def test_it_is_the_copy_that_is_tested() -> None:
    assert Path(toy.__file__).is_relative_to(Path(__file__).parents[1])


def test_double() -> None:
    assert toy.double(3) == 6
"""


def patch(line: str, *, before: str = "    return x + x", header: str | None = None) -> str:
    header = header or "# breaks: law 0, doubling; shown by: tests/test_toy.py"
    diff = f"--- a/src/toy.py\n+++ b/src/toy.py\n@@ -1,2 +1,2 @@\n def double(x: int) -> int:\n-{before}\n+{line}\n"
    return f"{header}\ndiff --git a/src/toy.py b/src/toy.py\n{diff}"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "toy"
    monkeypatch.setenv("PYTHONPATH", str(root / "src"))  # as an editable install does: the original, not the copy
    files = {"src/toy.py": SOURCE, "tests/test_toy.py": TEST, "tests/mutants/wrong.patch": patch("    return x * x")}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def add(toy: Path, text: str) -> mutants.Mutant:
    path = toy / "tests/mutants/another.patch"
    path.write_text(text)
    return mutants.read(path)


def test_all_red_is_success(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.run(toy) == 0
    table = capsys.readouterr().out
    assert table.startswith("red")
    assert "law 0, doubling" in table
    assert "tests/test_toy.py::test_double" in table
    assert (toy / "src/toy.py").read_text() == SOURCE


def test_a_survivor_is_a_failure(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(toy, patch("    return 2 * x"))
    assert mutants.run(toy) == 1
    assert "1 of 2" in capsys.readouterr().out


def test_a_stale_patch_is_a_failure(toy: Path) -> None:
    stale = add(toy, patch("    return 0", before="    return x << 1"))
    assert mutants.outcome(toy, stale) == mutants.Outcome(False, "the patch does not apply")


def test_a_mutant_that_does_not_even_import_proves_nothing(toy: Path) -> None:
    assert "did not run" in mutants.outcome(toy, add(toy, patch("    return ("))).said


def test_tests_that_are_not_there_prove_nothing(toy: Path) -> None:
    gone = add(toy, patch("    return 0", header="# breaks: law 0; shown by: tests/test_gone.py"))
    assert "did not run" in mutants.outcome(toy, gone).said


def test_a_mutant_that_hangs_is_ended(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "PATIENCE", 2)
    endless = add(toy, patch("    return __import__('time').sleep(60)"))
    assert mutants.outcome(toy, endless) == mutants.Outcome(False, "hung for 2 s")


def test_a_tree_that_is_red_by_itself_proves_nothing(toy: Path) -> None:
    (toy / "src/toy.py").write_text(SOURCE.replace("x + x", "x"))
    with pytest.raises(SystemExit, match="without any patch the tests are not green"):
        mutants.run(toy)


def test_a_patch_without_its_header_is_refused(toy: Path) -> None:
    with pytest.raises(SystemExit, match=r"another\.patch: no line"):
        add(toy, patch("    return 0", header="# what this does is a secret"))


# --------------------------------------------------------------------------------------------------- our own patches

PATCHES = sorted((ROOT / "tests" / "mutants").glob("*.patch"))


@pytest.mark.parametrize("patch", PATCHES, ids=[patch.stem for patch in PATCHES])
def test_a_patch_of_ours_applies_and_names_tests_that_are_there(patch: Path) -> None:
    """`make mutants` takes minutes; that a change has made a patch stale is told at once."""
    checked = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    for test in mutants.read(patch).tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text() or not name


def test_each_law_is_broken_somewhere() -> None:
    broken = {mutants.read(patch).law.partition(",")[0] for patch in PATCHES}
    assert broken >= {f"law {number}" for number in range(1, 10)}
