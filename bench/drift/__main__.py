"""`python -m bench.drift [--quick]`: prints the tables; the full run writes TABLE.md and results.json."""

from __future__ import annotations

import argparse

from bench.drift.run import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.drift", description="What each way of recording loses.")
    parser.add_argument("--quick", action="store_true", help="two tokenizers, one rollout a cell; writes nothing")
    print(run(parser.parse_args().quick))


if __name__ == "__main__":
    main()
