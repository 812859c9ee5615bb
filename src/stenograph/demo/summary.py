"""What is said at the end: did it hold, what is there, what next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from stenograph.audit.audit import Checked
from stenograph.core import Sample
from stenograph.demo.folder import Folder
from stenograph.inspector.totals import forks_in_words, totals

SHOWN = 5
"""Findings of one law in full; the others are counted."""

NEXT = """\
Next, your own engine. Start the gateway, and point any agent at it:

  {command} serve --engine vllm=http://127.0.0.1:8000    (or --engine local=smollm2, without a server)

  from openai import OpenAI
  client = OpenAI(base_url="http://127.0.0.1:9000/s/my-rollout/v1", api_key="none")
  client.chat.completions.create(model="policy", messages=[{{"role": "user", "content": "Hello"}}], max_tokens=64)

  curl http://127.0.0.1:9000/sessions/my-rollout/samples"""


def summary(checks: Sequence[Checked], samples: Sequence[Sample], folder: Folder) -> str:
    lines = [*_laws(checks), "", *_figures(samples), "", *_files(folder), "", NEXT.format(command=_command())]
    return "\n".join(lines)


def verdict(checks: Sequence[Checked]) -> str:
    findings = sum(len(check.findings) for check in checks)
    return f"{findings} findings" if findings else "every law holds"


def _laws(checks: Sequence[Checked]) -> Iterator[str]:
    yield f"Checked against the engine's own log: {verdict(checks)}."
    for check in checks:
        yield f"  {'✗' if check.findings else '✓'} {check.law:<20} {check.count:>6,} {check.things}"
        yield from (f"      {finding}" for finding in check.findings[:SHOWN])
        if len(check.findings) > SHOWN:
            yield f"      and {len(check.findings) - SHOWN} more"


def _figures(samples: Sequence[Sample]) -> Iterator[str]:
    yield ", ".join(f"{label} {figure}" for label, figure in totals(samples).items())
    rewards = {sample.session_id: (sample.metadata["agent"], sample.reward) for sample in samples}
    yield "  rewards: " + ", ".join(f"{agent} {reward:.2f}" for agent, reward in rewards.values())
    yield from (f"  {words}" for words in forks_in_words(samples))


def _files(folder: Folder) -> Iterator[str]:
    width = max(len(str(path)) for path in (folder.report, folder.samples, folder.store, folder.log))
    yield f"  {folder.report!s:<{width}}  for people: open {folder.report.resolve().as_uri()} in a browser"
    yield f"  {folder.samples!s:<{width}}  for trainers: one sample a line"
    export = f"{_command()} export --store {shlex.quote(str(folder.store))} --format jsonl"
    yield f"  {folder.store!s:<{width}}  the record: {export}"
    yield f"  {folder.log!s:<{width}}  the engine's own log of every prompt and token"


def _command() -> str:
    """As it was called, so that it can be called so again."""
    called = Path(sys.argv[0])
    return shlex.quote(str(called)) if called.name == "stenograph" else "stenograph"
