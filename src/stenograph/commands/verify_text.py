"""What `stenograph verify` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from stenograph.audit.rescoring import Compared, NotCompared, Token, by_weights, worst
from stenograph.core import Sample
from stenograph.render.tokenizer import Tokenizer

WORST = 5
BEFORE = 12
"""Tokens shown before one that differs."""
HEAD = f"{'weights':<16} {'spans':>6} {'tokens':>8} {'mean':>9} {'p99':>9} {'max':>9} {'worst span':>11}"


def text_of(
    verdicts: Sequence[Compared | NotCompared],
    samples: Mapping[str, Sample],
    tolerance: float,
    held: str | None,
    tokenizer: Tokenizer | None,
) -> str:
    spans = [one for one in verdicts if isinstance(one, Compared)]
    left_out = Counter(one.why for one in verdicts if isinstance(one, NotCompared))
    return "\n".join([*_table(spans, tolerance, held), *_left_out(left_out), *_examples(spans, samples, tokenizer)])


def _table(spans: Sequence[Compared], tolerance: float, held: str | None) -> Iterator[str]:
    """In nats, of what was recorded less what the engine says now."""
    if not spans:
        yield "nothing could be compared"
        return
    yield "absolute difference of logprobs, recorded and scored again:"
    yield HEAD
    for line in by_weights(spans, tolerance):
        name = line.version or "(no version)"
        verdict = f"{line.beyond} of {line.spans} spans beyond {tolerance}" if line.beyond else f"within {tolerance}"
        yield (
            f"{name:<16.16} {line.spans:>6} {line.tokens:>8} {line.mean:>9.5f} {line.p99:>9.5f} {line.max:>9.5f} "
            f"{line.worst_span:>11.5f}  {verdict}"
        )
    if held is None:
        yield "the engine does not say which weights it has: taken to be the only ones there are"


def _left_out(reasons: Counter[str]) -> Iterator[str]:
    for why, count in reasons.most_common():
        yield f"not compared: {count} span{'s' if count > 1 else ''}: {why}"


def _examples(spans: Sequence[Compared], samples: Mapping[str, Sample], tokenizer: Tokenizer | None) -> Iterator[str]:
    tokens = [token for token in worst(spans, WORST) if token.recorded != token.rescored]
    if tokens:
        yield "tokens that differ most (recorded, now):"
    for token in tokens:
        yield f"  {token.recorded:9.4f} {token.rescored:9.4f}  {_shown(token, samples[token.sample_id], tokenizer)}"


def _shown(token: Token, sample: Sample, tokenizer: Tokenizer | None) -> str:
    ids = sample.tokens[max(token.position - BEFORE, 0) : token.position + 1].tolist()
    *before, last = ids
    context = f"… {tokenizer.decode(before)!r} → {tokenizer.decode([last])!r}" if tokenizer else f"… {before} → {last}"
    return f"{context} at {token.position} of {token.sample_id}"
