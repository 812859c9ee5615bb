"""The tables of docs/EXACTNESS.md, from the templates themselves: `python -m tools.exactness` writes them anew.

Everything in them is measured: a probe of each folder of `../shared/tokenizers`, and rollouts long enough for proofs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.config import Settings
from stenograph.core import Fork
from stenograph.errors import TemplateRefused
from stenograph.furnish import renderer_of
from stenograph.render.probe import Probe, probe
from stenograph.render.rehearsal import NotReadBack, Reply, Setting, Step, rehearse
from stenograph.render.renderer import Renderer
from stenograph.render.telltales import TOOLS
from stenograph.render.trials import Cost, Thinking

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "EXACTNESS.md"
TOKENIZERS = ROOT.parent / "shared" / "tokenizers"
BEGIN, END = "<!-- written by tools/exactness.py -->\n", "<!-- to here -->"

ROUNDS = 6
"""Of each tail: enough to find out a template that counts."""
CALL = Reply(calls=1)
TAILS: dict[str, list[Step]] = {
    "user": [Reply(), "user"],
    "result": [CALL, "results"],
    "result, thinking": [Reply(thinks=True, calls=1), "results"],
    "two results": [Reply(calls=2), "results"],
    "result, user": [CALL, "results", "user"],
    "result, answer, user": [CALL, "results", Reply(), "user"],
}
"""What is said over and over behind the first question."""
ROLLOUTS: dict[str, tuple[str, Thinking]] = {
    "chat": ("chat", "none"),
    "chat, thinking": ("chat", "some"),
    "tool loop": ("tool_loop", "none"),
    "tool loop, thinking": ("tool_loop", "some"),
    "tool tasks": ("tasks", "none"),
    "tool tasks, thinking": ("tasks", "some"),
}
Verdict: TypeAlias = Literal["proven", "in full", "forks", "–"]
NOTHING: Verdict = "–"


def tables(renderers: Mapping[str, Renderer], probes: Mapping[str, Probe]) -> str:
    """Both by the folder's name."""
    names = sorted(renderers)
    families = [_family(name, probes[name]) for name in names]
    tails = [(name, *_tails(renderers[name], probes[name])) for name in names]
    samples = [(name, *_samples(probes[name])) for name in names]
    return "\n".join(
        [
            "\n**What a template is like**\n",
            *_table(("template", "append-only", "reasoning in history", "calls", "ends a turn"), families),
            "\n**What a turn costs, by what follows the reply**\n",
            *_table(("template", *TAILS), tails),
            "\n**Samples a rollout**\n",
            *_table(("template", *ROLLOUTS), samples),
            "\n",
        ]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"


# ------------------------------------------------------------------------------------------------------ what it is like


def _family(name: str, found: Probe) -> tuple[str, ...]:
    calls = {"written": found.call_parser.name.removeprefix("learned-"), "unread": "unread", "dropped": "none"}
    return (
        name,
        {"yes": "yes", "partly": "in part", "no": "no"}[found.append_only],
        _reasoning(found),
        calls[found.call_parser.source],
        " ".join("`" + stop.text.replace("|", "\\|") + "`" for stop in found.stops),
    )


def _reasoning(found: Probe) -> str:
    thought = found.reasoning
    if not thought.ever:
        return NOTHING if found.think_parser.source == "none" else "never"
    if thought.behind_user:
        return "kept"
    return "in a tool loop" if thought.in_tool_loop else "on the last reply"


def _tails(renderer: Renderer, found: Probe) -> Iterator[str]:
    for name, steps in TAILS.items():
        yield certified(renderer, name) if able(found, steps) else NOTHING


def able(found: Probe, steps: Sequence[Step]) -> bool:
    """Does the template write what such a tail answers?"""
    replies = [step for step in steps if isinstance(step, Reply)]
    missing = {take.what for take in found.takes if take.verdict != "written"}
    calls = max(reply.calls for reply in replies)
    return (
        (calls == 0 or found.call_parser.source == "written")
        and (calls < 2 or "two_calls" not in missing)
        and (found.reasoning.ever or not any(reply.thinks for reply in replies))
    )


def certified(renderer: Renderer, tail: str) -> Verdict:
    """Are turns with this tail rendered by certificate, all of them, once the proofs are there?"""
    try:
        if any(_rehearsed(renderer, tail)):
            return "forks"
    except (TemplateRefused, NotReadBack):
        return NOTHING
    before = renderer.certificates.quick
    turns = len(_rehearsed(renderer, tail))
    return "proven" if renderer.certificates.quick - before == turns - 1 else "in full"


def _rehearsed(renderer: Renderer, tail: str) -> list[Fork | None]:
    steps: list[Step] = ["user", *TAILS[tail] * ROUNDS, Reply()]
    return rehearse(renderer, steps, TOOLS if tail != "user" else (), {}, Setting())


# ------------------------------------------------------------------------------------------------------ what it costs


def _samples(found: Probe) -> Iterator[str]:
    return (_cell(found.costs, *rollout) for rollout in ROLLOUTS.values())


def _cell(costs: Sequence[Cost], rollout: str, thinking: Thinking) -> str:
    """Samples of one rollout under `--history template`, and under `verbatim` where that differs."""
    asked = [cost for cost in costs if (cost.rollout, cost.thinking) == (rollout, thinking)]
    if not asked:
        return NOTHING
    forks = {one.history: one.forks for one in asked[0].settings if one.reasoning == "restore"}
    counts = ["refused" if count is None else f"{count + 1}" for count in (forks["template"], forks["verbatim"])]
    return " / ".join(dict.fromkeys(counts))


# ---------------------------------------------------------------------------------------------------------- the page


def written(page: str, new: str) -> str:
    return re.sub(
        f"({re.escape(BEGIN)}).*({re.escape(END)})", lambda found: found[1] + new + found[2], page, flags=re.S
    )


def main() -> None:
    files = {path.parent.name: load_model_files(str(path.parent)) for path in TOKENIZERS.glob("*/tokenizer.json")}
    renderers = {name: renderer_of(Settings(), one, load_tokenizer(one)) for name, one in files.items()}
    probes = {name: probe(renderer, name) for name, renderer in renderers.items()}
    PAGE.write_text(written(PAGE.read_text(), tables(renderers, probes)))


if __name__ == "__main__":
    main()
