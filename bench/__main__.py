"""`make bench`: every benchmark, side by side in one run, into RESULTS.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import compare, context, first_token, machine
from bench.drift import run as drift
from bench.report import FULL, QUICK, Run

BENCHMARKS: dict[str, Run] = {
    "compare": compare.run,
    "first-token": first_token.run,
    "context": context.run,
    "drift": drift.run,
}
"""A benchmark more: a file with a `run`, and a line here."""
RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = "# Results\n\nWritten by `make bench`. How to read it: [README.md](README.md).\n"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the recorder costs.")
    parser.add_argument("--quick", action="store_true", help="see that everything works; the numbers mean nothing")
    parser.add_argument("--only", choices=BENCHMARKS, metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}")
    options = parser.parse_args(arguments)
    # As Ctrl-C does: what was started is ended on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = [options.only] if options.only else list(BENCHMARKS)
    sections = [_machine(), *(_section(name, quick=options.quick) for name in chosen)]
    if not options.quick and not options.only:
        RESULTS.write_text("\n".join([HEAD, *sections]))


def _machine() -> str:
    return _said("\n".join(["## Machine", "", *(f"- {line}" for line in machine.described()), ""]))


def _section(name: str, *, quick: bool) -> str:
    started = time.monotonic()
    tables = BENCHMARKS[name](QUICK if quick else FULL)
    took = f"Took {time.monotonic() - started:.0f} s."
    return _said("\n".join([f"## {name}", "", took, "", *(table.markdown() for table in tables)]))


def _said(section: str) -> str:
    print(section, flush=True)
    return section


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("bench: stopped")
