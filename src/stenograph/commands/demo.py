"""`stenograph demo`: a real model, a small agent, the laws checked on what they left behind, and where to look."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.assets.smollm2 import NAME as SMOLLM2
from stenograph.audit.audit import Checked, audit
from stenograph.core import Sample
from stenograph.demo.evidence import gathered
from stenograph.demo.folder import Folder, prepared
from stenograph.demo.progress import Progress
from stenograph.demo.rollouts import SUMS, Played, play
from stenograph.demo.summary import summary, verdict
from stenograph.errors import ConfigError
from stenograph.gateway import Gateway
from stenograph.inspector.report import report_html


def run(options: dict[str, Any]) -> int:
    rollouts: int = options["rollouts"]
    if rollouts < 1:
        raise ConfigError(f"--rollouts {rollouts}: at least one")
    _prefer_a_question_mark_to_a_traceback()
    folder = prepared(Path(options["out"]))
    played = asyncio.run(_played(folder, rollouts))
    evidence = gathered(folder, played)
    checks = audit(evidence)
    _report(folder, evidence.samples, checks)
    print(f"\n{summary(checks, evidence.samples, folder)}")
    return 1 if any(check.findings for check in checks) else 0


async def _played(folder: Folder, rollouts: int) -> Played:
    print("Loading SmolLM2, a language model of 135 million parameters …", file=sys.stderr, flush=True)
    async with Gateway(engine=f"local={SMOLLM2}", store=str(folder.store), log=folder.log) as gateway:
        progress = Progress(rollouts, rollouts * len(SUMS), sys.stderr)
        async with progress.shown():
            return await play(gateway, folder.store, rollouts, progress)


def _report(folder: Folder, samples: Sequence[Sample], checks: Sequence[Checked]) -> None:
    facts = {
        "Agent": "answers sums with a tool that adds; each rollout has a habit of its own, named in its metadata",
        "Laws": f"checked against the engine's own log: {verdict(checks)}",
    }
    tokenizer = load_tokenizer(load_model_files(SMOLLM2))
    page = report_html(samples, tokenizer, title="Rollouts of a small agent on SmolLM2", facts=facts)
    folder.report.write_text(page, encoding="utf-8")


def _prefer_a_question_mark_to_a_traceback() -> None:
    """Where a terminal cannot show a letter of ours."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
