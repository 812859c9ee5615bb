"""Where a demo writes. What an earlier demo left there is replaced; what is somebody's is never touched."""

from __future__ import annotations

import shutil
from pathlib import Path

from stenograph.core import Value
from stenograph.errors import ConfigError
from stenograph.store.lock import FolderLock

MARKER = ".stenograph-demo"
"""An empty file, written before anything else: the sign that the rest is ours."""


class Folder(Value):
    root: Path

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def log(self) -> Path:
        return self.root / "engine.jsonl"

    @property
    def samples(self) -> Path:
        return self.root / "samples.jsonl"

    @property
    def report(self) -> Path:
        return self.root / "report.html"


def prepared(root: Path) -> Folder:
    folder = Folder(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()) and not (root / MARKER).exists():
            raise ConfigError(f"--out {root}: it holds something that is not of a demo; name an empty or a new folder")
        (root / MARKER).touch()
        _clear(folder)
    except FileExistsError as error:
        raise ConfigError(f"--out {root}: it is a file, not a folder") from error
    except OSError as error:
        raise ConfigError(f"--out {root}: {error.strerror}") from error
    return folder


def _clear(folder: Folder) -> None:
    """By name: a file that somebody has put beside ours stays."""
    if folder.store.is_dir():
        _refuse_where_in_use(folder)
        shutil.rmtree(folder.store)
    for file in (folder.log, folder.samples, folder.report):
        file.unlink(missing_ok=True)


def _refuse_where_in_use(folder: Folder) -> None:
    try:
        FolderLock(folder.store).release()
    except ConfigError as error:
        raise ConfigError(f"--out {folder.root}: {error}") from error
