"""A probe in words and tables, for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stenograph.render.probe import CallParser, Probe, ThinkParser
from stenograph.render.takes import Kind, Reasoning, Take
from stenograph.render.trials import SWITCH, Cost, RolloutName, Tail, TailName, Thinking

WIDTH, LABEL, CELL = 100, 37, 11
APPEND_ONLY: Final = {
    "yes": "append-only: each prompt goes on where the last reply ended",
    "partly": "append-only in part: the tables below say where",
    "no": "not append-only: whatever follows a reply, some of the history is written anew",
}
THINKS: Final[Mapping[Thinking, str]] = {"none": "no", "some": "yes", "off": "off"}
TAILS: Final[Mapping[TailName, str]] = {
    "user": "a user message",
    "user_without_system": "the same, no system message first",
    "system_then_user": "a system message, a user message",
    "result": "a tool's result",
    "two_results": "two results of calls at once",
    "result_then_user": "a result, a user message",
    "answer_then_user": "a result, an answer, a user message",
}
THINKING: Final[Mapping[Thinking, str]] = {"none": "", "some": ", thinking", "off": ", thinking off"}
ROLLOUTS: Final[Mapping[RolloutName, str]] = {
    "chat": "chat",
    "tool_loop": "tool loop",
    "tasks": "three tool tasks",
}
TAKES: Final[Mapping[Kind, str]] = {
    "system": "a system message",
    "later_system": "a system message later on",
    "developer": "a developer message",
    "user_twice": "two user messages in a row",
    "assistant_first": "an assistant message first",
    "tools": "the list of tools",
    "tool_call": "tool calls",
    "two_calls": "two calls at once",
    "tool_result": "a tool's result",
    "user_behind_result": "a user message behind a result",
    "other_call_ids": "call ids other than nine letters",
}
NEED_CALLS: Final = frozenset({"two_calls", "tool_result", "user_behind_result", "other_call_ids"})


def text_of(probe: Probe) -> str:
    lines = [f"{probe.model}: {APPEND_ONLY[probe.append_only]}", "", *_facts(probe), ""]
    lines += ["Does the next prompt go on where the reply ended?", *_tails(probe.tails), ""]
    lines += ["What a rollout costs: forks, each of which is one more sample", *_costs(probe.costs), ""]
    lines += [*_advice(probe)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


# -------------------------------------------------------------------------------------------------------- what is read


def _facts(probe: Probe) -> Iterator[str]:
    yield from _fact("reasoning", _think(probe.think_parser))
    yield from _fact("", _kept(probe.reasoning, probe.think_parser))
    yield from _fact("tool calls", _calls(probe.call_parser))
    if probe.call_parser.form is not None:
        for line in probe.call_parser.form.splitlines():
            yield " " * 16 + line
        shown = "JSON text" if probe.call_parser.arguments_as_text else "an object"
        yield from _fact("", f"the template is given arguments as {shown}")
    stops = [f"{stop.text} ({stop.id})" for stop in probe.stops] + [repr(text) for text in probe.stop_strings]
    yield from _fact("a turn ends at", ", ".join(stops) or "nothing that is known: only at max_tokens")
    yield from _fact("date", _date(probe.date_in_prompt))
    for verdict, words, kinds in _remarkable(probe.takes):
        yield from _fact(verdict, "; ".join(TAKES[kind] for kind in kinds) + (f": {words}" if words else ""))


def _fact(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{label:16}", subsequent_indent=" " * 16, break_long_words=False)


def _think(parser: ThinkParser) -> str:
    if parser.source == "none":
        return "the template knows of none: what the model thinks is part of its answer"
    between = f"read between {parser.opening} and {parser.closing}, "
    if parser.source == "named":
        return between + "which the template names"
    return between + f"as the template writes it (it asks for `{parser.key}`)"


def _kept(reasoning: Reasoning, parser: ThinkParser) -> str:
    if parser.source == "none":
        return "so it stays in history, like any text"
    if not reasoning.ever:
        return "never written into history: it is dropped with the next message"
    if reasoning.behind_user:
        return "kept in history"
    if reasoning.last and reasoning.in_tool_loop:
        return "kept in history inside a tool loop, dropped at the next user message"
    return "kept in history inside a tool loop only" if reasoning.in_tool_loop else "kept on the last reply only"


def _calls(parser: CallParser) -> str:
    if parser.source == "dropped":
        return "none: the template writes no tool calls, so none are read either"
    if parser.source == "unread":
        return "none: the template writes them in a form that is not known here"
    return f"read as the template writes them (parser {parser.name})"


def _date(told: bool) -> str:
    return "today's is in the prompt; a session keeps the date it was opened on" if told else "none in the prompt"


def _remarkable(takes: Sequence[Take]) -> list[tuple[str, str | None, list[Kind]]]:
    """What is not simply written, together where the template says the same of it. What follows from its knowing no
    calls at all goes without saying."""
    no_calls = any(take.what == "tool_call" and take.verdict != "written" for take in takes)
    shown = [take for take in takes if take.verdict != "written" and not (no_calls and take.what in NEED_CALLS)]
    alike = dict.fromkeys((take.verdict, take.words) for take in shown)
    return [(*one, [take.what for take in shown if (take.verdict, take.words) == one]) for one in alike]


# -------------------------------------------------------------------------------------------------------------- tables


def _tails(tails: Sequence[Tail]) -> Iterator[str]:
    tried = [tail for tail in tails if tail.verdict != "absent"]
    ways = list(dict.fromkeys((tail.tools, tail.thinking) for tail in sorted(tried, key=_column)))
    details = list(dict.fromkeys(tail.detail for tail in tried if tail.detail))
    yield _row("tools offered", ["yes" if tools else "no" for tools, _ in ways])
    yield _row("the model thinks", [THINKS[thinking] for _, thinking in ways])
    yield "the reply is followed by"
    for name in dict.fromkeys(tail.tail for tail in tried):
        cells = {(tail.tools, tail.thinking): _verdict(tail, details) for tail in tried if tail.tail == name}
        yield _row(f"  {TAILS[name]}", [cells.get(way, "-") for way in ways])
    for number, detail in enumerate(details, 1):
        yield f"  [{number}] {detail}"


def _column(tail: Tail) -> tuple[bool, int]:
    return tail.tools, list(THINKS).index(tail.thinking)


def _verdict(tail: Tail, details: Sequence[str]) -> str:
    return tail.verdict + (f" [{details.index(tail.detail) + 1}]" if tail.detail else "")


def _costs(costs: Sequence[Cost]) -> Iterator[str]:
    yield _row("--history", ["template", "", "verbatim"])
    yield _row("--reasoning", ["restore", "strict", "restore", "strict"])
    chats = [(cost.thinking, cost.settings) for cost in costs if cost.rollout == "chat" and not cost.tools]
    for cost in costs:
        offered = cost.rollout == "chat" and cost.tools
        if offered and (cost.thinking, cost.settings) in chats:
            continue
        label = ROLLOUTS[cost.rollout] + (", tools offered" if offered else "") + THINKING[cost.thinking]
        cells = ["refused" if one.forks is None else f"{one.forks} of {cost.turns}" for one in cost.settings]
        yield _row(f"  {label}", cells)


def _row(label: str, cells: Sequence[str]) -> str:
    return f"{label:{LABEL}} " + "".join(f"{cell:{CELL}}  " for cell in cells)


# -------------------------------------------------------------------------------------------------------------- advice


def _advice(probe: Probe) -> Iterator[str]:
    yield from textwrap.wrap(
        "The agent of these rollouts is one like most: it sends back what was said, not what was thought. "
        "`template` follows the template and forks; `verbatim` keeps what was sampled, and the prompt reads otherwise "
        "than the template would write it. `strict` does not put back reasoning that the agent left out.",
        WIDTH,
    )
    if any(tail.thinking == "off" and tail.verdict != "absent" for tail in probe.tails):
        yield f"Thinking is off with `--chat-template-kwargs '{{\"{SWITCH}\": false}}'`."
    if probe.call_parser.source != "written":
        yield "Don't give tools to an agent on this template; bring another one with `serve --chat-template FILE`."
    elif any(take.what == "tools" and take.verdict == "dropped" for take in probe.takes):
        yield "The template does not tell the model of its tools: the agent's system message has to."
