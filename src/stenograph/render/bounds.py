"""A template is a program that somebody else has written: it may loop for ever, or fill the memory. Here it may not.

Steps are counted, not seconds, so that a conversation that renders once renders always. The compiler is handed a
template whose loops and macros each begin with a count, and whose sums and products look at their length first.
"""

from __future__ import annotations

from typing import Any

import jinja2
import jinja2.nodes
import jinja2.sandbox
import jinja2.visitor

from stenograph.core import JSON

STEPS = 2_000_000
"""Rounds of loops and calls of macros, together: some two seconds. A template that looks at every message for every
message takes so many for a thousand of them."""
LONGEST = 1 << 27
"""Characters of any one text, and of a whole render."""


class TooMuch(jinja2.TemplateError):
    """The template goes on and on."""


class BoundedEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.steps = 0
        self.joined = self._joined

    def compiled(self, source: str) -> jinja2.Template:
        return self.from_string(_Counting().visit(self.parse(source)))

    def rendered(self, template: jinja2.Template, variables: dict[str, JSON]) -> str:
        self.steps, length = 0, 0
        pieces = []
        for piece in template.generate(variables):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST:
                raise TooMuch(f"it writes more than {LONGEST} letters")
        return "".join(pieces)

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        size = _size(operator, left, right)
        if size > LONGEST:
            raise TooMuch(f"it makes something of {size} letters or digits")
        return super().call_binop(context, operator, left, right)

    @property
    def step(self) -> None:
        """Looked at by each step: a property, since a call in a sandbox costs twenty times as much."""
        self.steps += 1
        if self.steps > STEPS:
            raise TooMuch(f"it takes more than {STEPS} steps")

    def _joined(self, *parts: JSON) -> str:
        texts = [str(part) for part in parts]
        if sum(map(len, texts)) > LONGEST:
            raise TooMuch(f"it makes a text of more than {LONGEST} letters")
        return "".join(texts)


class _Counting(jinja2.visitor.NodeTransformer):
    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:
        return self._counted(node)

    def visit_Macro(self, node: jinja2.nodes.Macro) -> jinja2.nodes.Node:
        return self._counted(node)

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:
        self.generic_visit(node)
        joined = jinja2.nodes.EnvironmentAttribute("joined", lineno=node.lineno)
        return jinja2.nodes.Call(joined, node.nodes, [], None, None, lineno=node.lineno)

    def _counted(self, node: jinja2.nodes.For | jinja2.nodes.Macro) -> jinja2.nodes.Node:
        self.generic_visit(node)
        step = jinja2.nodes.EnvironmentAttribute("step", lineno=node.lineno)
        node.body.insert(0, jinja2.nodes.ExprStmt(step, lineno=node.lineno))
        return node


def _size(operator: str, left: Any, right: Any) -> int:
    """Of what an operator would make, as far as it may be large."""
    if operator == "**":
        return _power(left, right)
    lengths = [len(side) if hasattr(side, "__len__") else None for side in (left, right)]
    if operator == "+":
        return sum(length or 0 for length in lengths)
    times = [side if isinstance(side, int) else 0 for side in (left, right)]
    return max((length * count for length, count in zip(lengths, reversed(times), strict=True) if length), default=0)


def _power(left: Any, right: Any) -> int:
    return left.bit_length() * right if isinstance(left, int) and isinstance(right, int) else 0
