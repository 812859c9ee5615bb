"""The import law: each room knows only the rooms below it, so that the way of a request reads in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "stenograph"

PURE = ("wire", "session", "render", "export")
LAW = (
    ("core", "errors", "version"),
    (*PURE, "origin", "sidecar"),
    ("assets", "config", "engine", "store", "tally"),
    ("audit", "house", "live"),
    ("decision",),
    ("teacher", "turn"),
    ("clients", "furnish", "inspector", "server"),
    ("faculty",),
    ("gateway",),
    ("demo", "integrations"),
    ("commands",),
    ("cli",),
    ("__init__", "__main__"),
)
"""A room may import the rooms of the rows above its own. Rooms of one row are siblings: they never meet."""

WORLD = {"http", "logging", "os", "pathlib", "shutil", "socket", "sqlite3", "subprocess", "tempfile", "urllib"}
CLOCKWORK = {"asyncio", "concurrent", "multiprocessing", "threading"}
SERVICES = {"aiohttp", "anthropic", "gguf", "huggingface_hub", "openai", "starlette", "uvicorn", "uvloop", "xllamacpp"}
IMPURE = WORLD | CLOCKWORK | SERVICES
"""What the pure rooms do without: bytes and values in, bytes and values out."""

HEAVY = SERVICES | {"jinja2", "numpy", "tokenizers"}
"""What only the command that needs it may load: `stenograph --help` answers at once."""


def tier(room: str) -> int:
    return next((number for number, rooms in enumerate(LAW) if room in rooms), len(LAW))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def files() -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield room_of(path), path, ast.parse(path.read_text())


def absolute(node: ast.ImportFrom, path: Path) -> str:
    """The module that a `from … import` names, with leading dots resolved."""
    package = ("stenograph", *path.relative_to(SOURCE).parent.parts)
    base = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join((*base, *filter(None, [node.module])))


def imports(tree: ast.Module, path: Path) -> Iterator[tuple[int, str]]:
    """Every module that is imported, also inside functions and for types only: each is something to know about."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node, path)
            bare = module == "stenograph"
            yield from ((node.lineno, f"{module}.{alias.name}" if bare else module) for alias in node.names)


def breaches(room: str, path: Path, tree: ast.Module) -> Iterator[str]:
    for line, module in imports(tree, path):
        top, *inner = module.split(".")
        where = f"{path.name}:{line}"
        if top == "stenograph":
            target = inner[0] if inner else "__init__"
            if target != room and not (tier(target) < tier(room)):
                yield f"{where}: {room} may not import {target}"
        elif room in PURE and top in IMPURE:
            yield f"{where}: {room} is pure, {top} is not"


def test_every_room_has_its_place_in_the_law() -> None:
    assert {room for room, _, _ in files()} <= {room for rooms in LAW for room in rooms}


def test_rooms_import_only_what_is_below_them() -> None:
    assert [breach for room, path, tree in files() for breach in breaches(room, path, tree)] == []


def test_nothing_is_imported_by_name_behind_the_laws_back() -> None:
    dynamic = {"import_module", "__import__"}
    found = [
        f"{path.name}:{node.lineno}"
        for room, path, tree in files()
        for node in ast.walk(tree)
        if room != "__init__"
        and (
            (isinstance(node, ast.Name) and node.id in dynamic)
            or (isinstance(node, ast.Attribute) and node.attr in dynamic)
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    ("room", "statement", "allowed"),
    [
        ("engine", "from stenograph.core import Delta", True),
        ("engine", "from stenograph.engine.evidence import checked", True),
        ("engine", "from .evidence import checked", True),
        ("engine", "from ..store.store import Store", False),
        ("engine", "def f():\n    import stenograph.turn", False),
        ("wire", "from stenograph import session", False),
        ("wire", "import asyncio", False),
        ("server", "import asyncio", True),
        ("core", "if TYPE_CHECKING:\n    from stenograph.turn import serve", False),
    ],
)
def test_the_law_sees(room: str, statement: str, allowed: bool) -> None:
    found = list(breaches(room, SOURCE / room / "x.py", ast.parse(statement)))
    assert bool(found) is not allowed


@pytest.mark.parametrize("module", ["stenograph", "stenograph.cli"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    code = f"import {module}, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert HEAVY & set(run.stdout.split()) == set()
