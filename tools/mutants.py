"""Are the laws guarded? Each patch in tests/mutants breaks one of them in one place, and a test has to turn red.

A patch says above its diff what it breaks and which tests show it:

    # breaks: law 1, a sampled token is encoded again; shown by: tests/laws/test_engine_truth.py

Each runs in a copy of the tree of its own. The unpatched tree has to be green on the same tests first: else red would
prove nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

PATIENCE = 300
"""Seconds for one run of tests: a mutant may well hang."""
HEADER = re.compile(r"^# breaks: (?P<law>.+); shown by: (?P<tests>.+)$", re.MULTILINE)
RED_LINE = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
ALL_PASSED, SOME_FAILED = 0, 1
"""pytest's exit codes. Any other means that the tests did not run, which shows nothing."""


class Mutant(msgspec.Struct, frozen=True):
    patch: Path
    law: str
    tests: tuple[str, ...]
    """What to give pytest: files or node ids."""


class Outcome(msgspec.Struct, frozen=True):
    red: bool
    """A test ran, and failed."""
    said: str
    """The test that failed, or what went otherwise."""


def read(patch: Path) -> Mutant:
    header = HEADER.search(patch.read_text().partition("\ndiff --git")[0])
    if header is None:
        raise SystemExit(f"{patch.name}: no line `# breaks: …; shown by: …` above the diff")
    return Mutant(patch, header["law"], tuple(header["tests"].split()))


def tracked(root: Path) -> list[Path]:
    """What a commit would hold now: work that is not committed yet is tested as well."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in names.split("\0") if name and (root / name).is_file()]


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = Path(folder).resolve() / root.name
        for name in tracked(root):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
        shared = root.parent / "shared"
        if shared.is_dir():
            (tree.parent / "shared").symlink_to(shared)
        yield tree


def applied(patch: Path, tree: Path) -> bool:
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(["git", "apply", str(patch)], cwd=tree, env=alone, check=False).returncode == 0


def tested(tree: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """pytest's exit code (None: it hung) and output. PYTHONPATH wins over the editable install; conftest makes sure."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    settings = {**os.environ, "CI": "true", "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.Popen(
        command,
        cwd=tree,
        env=settings,
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        output, _ = run.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        if run.poll() is None:  # it hangs, or whoever waits was interrupted
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    return run.returncode, output


def verdict(code: int | None, output: str) -> Outcome:
    if code is None:
        return Outcome(False, f"hung for {PATIENCE} s")
    if code == ALL_PASSED:
        return Outcome(False, "survived")
    failed = RED_LINE.search(output)
    if code == SOME_FAILED and failed:
        return Outcome(True, failed[1])
    return Outcome(False, f"the tests did not run\n{output}")


def outcome(root: Path, mutant: Mutant) -> Outcome:
    with copied(root) as tree:
        if not applied(mutant.patch, tree):
            return Outcome(False, "the patch does not apply")
        return verdict(*tested(tree, mutant.tests))


def require_green(root: Path, mutants: Sequence[Mutant]) -> None:
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with copied(root) as tree:
        code, output = tested(tree, tests)
    if code != ALL_PASSED:
        raise SystemExit(f"{output}\nwithout any patch the tests are not green, so red would prove nothing")


def run(root: Path) -> int:
    mutants = [read(patch) for patch in sorted((root / "tests" / "mutants").glob("*.patch"))]
    if not mutants:
        raise SystemExit("no patches in tests/mutants")
    require_green(root, mutants)
    survivors = 0
    for mutant in mutants:
        result = outcome(root, mutant)
        survivors += not result.red
        print(f"{'red' if result.red else 'NOT RED':8} {mutant.law}\n{'':8} {result.said}", flush=True)
    print(f"{len(mutants) - survivors} of {len(mutants)} mutants turned a test red")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(run(Path(__file__).resolve().parents[1]))
