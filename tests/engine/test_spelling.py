"""Ids that no encoder would give: the text is the same, the tokens are not."""

from __future__ import annotations

import random
from pathlib import Path

import hypothesis.strategies as st
import pytest
import tokenizers
from hypothesis import given
from tokenizers import decoders, models

from stenograph.engine.speech import WORDS
from stenograph.engine.spelling import Spelling
from stenograph.render.tokenizer import Tokenizer
from tests.engine.streams import CORPUS, END, small_spec, small_tokenizer

SMALL = small_tokenizer()


def share_of_odd_spellings(tokenizer: Tokenizer) -> float:
    """Every one of them decodes to the text; counted are those that are not its encoding."""
    spelling, dice = Spelling(tokenizer, cut=0.3), random.Random(0)
    odd = 0
    for text in [*CORPUS, *(" ".join(dice.choice(WORDS) for _ in range(12)) for _ in range(20))]:
        canonical, spelt = tokenizer.encode(text), list(spelling.spell(text, dice))
        assert tokenizer.decode(spelt) == tokenizer.decode(canonical)
        odd += spelt != canonical
    return odd / (len(CORPUS) + 20)


def test_spellings_are_odd_and_read_the_same() -> None:
    assert share_of_odd_spellings(SMALL) > 0.9


def test_spellings_are_odd_on_real_tokenizers(tokenizer_folder: Path) -> None:
    assert share_of_odd_spellings(Tokenizer((tokenizer_folder / "tokenizer.json").read_text())) > 0.9


@given(st.text(), st.integers(0, 2**32))
def test_any_text_reads_the_same(text: str, seed: int) -> None:
    assert SMALL.decode(Spelling(SMALL, cut=0.5).spell(text, random.Random(seed))) == text


@pytest.mark.parametrize("marker", ["<tool_call>", END])
def test_markers_become_control_ids_and_stay_whole(marker: str) -> None:
    spelt = list(Spelling(SMALL, cut=1.0).spell(f"answer{marker}answer", random.Random(0)))
    assert spelt.count(SMALL.added[marker]) == 1
    assert SMALL.decode(spelt) == f"answer{marker}answer"


def test_a_marker_is_no_text_even_where_its_letters_are_tokens() -> None:
    inner = tokenizers.Tokenizer.from_str(small_spec())
    inner.add_special_tokens(["zz"])
    tokenizer = Tokenizer(inner.to_str())
    assert list(Spelling(tokenizer, cut=1.0).spell("zz", random.Random(0))) == [tokenizer.added["zz"]]


def test_the_name_of_a_byte_is_not_what_it_stands_for() -> None:
    """SentencePiece spells a line break `<0x0A>`, and some vocabularies have `<0` and `x0A>` as well."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "<0", "x0A>"]
    vocab = {token: id for id, token in enumerate(tokens)}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True))
    inner.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    spelt = list(Spelling(Tokenizer(inner.to_str()), cut=1.0).spell("\n", random.Random(0)))
    assert spelt == [vocab["<0x0A>"]]


def test_no_cut_is_the_tokenizers_own_spelling() -> None:
    assert list(Spelling(SMALL, cut=0.0).spell(CORPUS[0], random.Random(0))) == SMALL.encode(CORPUS[0])
