"""Puts groups into a folder until it is killed, and prints the number of each that it has put."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from stenograph.integrations.atropos.spool import Entry, Spool


def main() -> None:
    spool = Spool(Path(sys.argv[1]))
    while True:
        print(spool.put(Entry(data=msgspec.Raw(b'{"number":0}'))), flush=True)


if __name__ == "__main__":
    main()
