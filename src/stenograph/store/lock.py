"""One process writes to a folder. The lock is the kernel's: it goes with the process, also with one that was killed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from stenograph.errors import ConfigError


class FolderLock:
    def __init__(self, folder: Path) -> None:
        self._file = (folder / "lock").open("a+b", buffering=0)
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """The file stays: if it were removed, two processes could each hold a lock on a different one of that name."""
        self._file.close()

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read(20).decode(errors="replace")
            raise ConfigError(
                f"in use by another stenograph (process {holder}): stop it or name another folder"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()).encode())
