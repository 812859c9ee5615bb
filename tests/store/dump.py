"""`python -m tests.store.dump` writes down what this version of the schema makes of a specimen: once, at its release.

From then on the file stands for the stores that users have. Where a test finds that it can no longer be read, mend the
code (a default for a new field, a migration), not the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from stenograph.store.schema import VERSION
from stenograph.store.sqlite import FILE, SqliteStore
from tests.store.nouns import BATCHES, SAID, records, specimen


async def dump(folder: Path) -> str:
    store = SqliteStore(folder)
    await store.commit([*records(specimen()), *BATCHES, *SAID])
    await store.close()
    with closing(sqlite3.connect(folder / FILE)) as connection:
        return "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(__file__).with_name(f"version{VERSION}.sql").write_text(asyncio.run(dump(Path(folder))))
