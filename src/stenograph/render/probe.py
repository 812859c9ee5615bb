"""What there is to know of a chat template before a run: found out by trying, with nothing but its own renders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from stenograph.core import Conversation, Value
from stenograph.render.family import Family
from stenograph.render.grammar import CallForm
from stenograph.render.marks import ANYTHING
from stenograph.render.renderer import Renderer
from stenograph.render.takes import Reasoning, Take, reasoning, takes, tells_the_date
from stenograph.render.telltales import TOOLS
from stenograph.render.trials import Able, Cost, Tail, costs, tails


class ThinkParser(Value):
    """How reasoning is told from an answer."""

    source: Literal["written", "named", "none"]
    """`written`: the template writes reasoning between these marks. `named`: it names them and writes no past
    reasoning. `none`: it knows of none, so whatever the model thinks is its answer."""
    opening: str | None = None
    closing: str | None = None
    key: str | None = None
    """By what name the template asks for reasoning."""


class CallParser(Value):
    """How tool calls are told from an answer."""

    source: Literal["written", "unread", "dropped"]
    """`written`: learned from what the template writes. `unread`: it writes calls in a form that is not known here.
    `dropped`: it writes none, so a model would never see what it has called."""
    name: str
    """Of the grammar: `learned-object`, `learned-named`, `learned-params`, `none`."""
    form: str | None = None
    """A call as it is written, NAME, KEY, VALUE and ID standing for what varies."""
    arguments_as_text: bool = False
    """The template wants arguments as JSON text; most want an object."""


class Stop(Value):
    id: int
    text: str


class Probe(Value, kw_only=True):
    schema: int = 1
    model: str
    templates: tuple[str, ...]
    """Hashes: of the template, and of the second one for conversations with tools, where there is one."""
    append_only: Literal["yes", "partly", "no"]
    """Over all tails that the template can write."""
    reasoning: Reasoning
    think_parser: ThinkParser
    call_parser: CallParser
    stops: tuple[Stop, ...]
    stop_strings: tuple[str, ...]
    date_in_prompt: bool
    takes: tuple[Take, ...]
    tails: tuple[Tail, ...]
    costs: tuple[Cost, ...]


def probe(renderer: Renderer, model: str) -> Probe:
    plain, with_tools = renderer.family(Conversation(())), renderer.family(Conversation((), TOOLS))
    taken, thought = takes(renderer), reasoning(renderer)
    able = Able(renderer, taken)
    tried = tails(renderer, able)
    return Probe(
        model=model,
        templates=tuple(dict.fromkeys((plain.template.hash, with_tools.template.hash))),
        append_only=_append_only(tried),
        reasoning=thought,
        think_parser=_think_parser(with_tools, thought),
        call_parser=_call_parser(with_tools, taken),
        stops=tuple(Stop(id, renderer.tokenizer.text_of(id)) for id in sorted(renderer.stop_ids)),
        stop_strings=with_tools.stop_strings,
        date_in_prompt=tells_the_date(renderer),
        takes=taken,
        tails=tried,
        costs=costs(renderer, able),
    )


def _append_only(tried: tuple[Tail, ...]) -> Literal["yes", "partly", "no"]:
    seen = {tail.verdict for tail in tried} & {"appends", "forks"}
    return "yes" if seen == {"appends"} else "partly" if "appends" in seen else "no"


def _think_parser(family: Family, thought: Reasoning) -> ThinkParser:
    grammar, spell = family.grammar, family.vocabulary.coding.spell
    if grammar.think is None:
        return ThinkParser("none")
    source: Literal["written", "named"] = "written" if thought.ever else "named"
    opening, closing = map(spell, grammar.think)
    return ThinkParser(source, opening, closing, grammar.style.reasoning_key if thought.ever else None)


def _call_parser(family: Family, taken: tuple[Take, ...]) -> CallParser:
    grammar, spell = family.grammar, family.vocabulary.coding.spell
    if grammar.call is not None:
        return CallParser("written", grammar.name, _shown(grammar.call, spell), grammar.style.text_arguments)
    written = any(take.what == "tool_call" and take.verdict == "written" for take in taken)
    return CallParser("unread" if written else "dropped", grammar.name)


def _shown(form: CallForm, spell: Callable[[str], str]) -> str:
    if form.kind == "object":
        id = f', "{form.id_key}": ID' if form.id_key else ""
        body = f'{{"{form.name_key}": NAME, "{form.arguments_key}": {{KEY: VALUE}}{id}}}'
        body = f"[{body}]" if form.listed else body
    elif form.kind == "named":
        body = ("functions.NAME:0" if form.by_id else "NAME") + form.between.replace(ANYTHING, "ID") + "{KEY: VALUE}"
    else:
        before, between, behind = form.param
        body = f"NAME{form.between}{before}KEY{between}{form.quote}VALUE{form.quote}{behind}"
    return spell(form.opening + body + form.closing)
