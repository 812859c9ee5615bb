"""Which differences between tokenizers count, and which do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import JSON
from stenograph.render.tokenizer import Tokenizer
from stenograph.teacher.alike import differences
from tests.conftest import tokenizer_folders
from tests.engine.streams import small_tokenizer

SMALL = small_tokenizer()._spec


def changed(change: Callable[[JSON], None], spec: str = SMALL) -> Tokenizer:
    tables = json.loads(spec)
    change(tables)
    return Tokenizer(json.dumps(tables))


def student() -> Tokenizer:
    return Tokenizer(SMALL)


def otherwise(**values: JSON) -> Callable[[JSON], None]:
    return lambda tables: tables.update(values)


def unspecial(tables: JSON) -> None:
    for token in tables["added_tokens"]:
        token["special"] = not token["special"]


def mute_decoder(tables: JSON) -> None:
    tables["decoder"] = None


HARMLESS = {
    "nothing": lambda tables: None,
    "padding": otherwise(padding={"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": None,
                                  "pad_id": 0, "pad_type_id": 0, "pad_token": "x"}),
    "truncation": otherwise(truncation={"direction": "Right", "max_length": 5, "strategy": "LongestFirst",
                                        "stride": 0}),
    "what is called special": unspecial,
    "how ids become text": mute_decoder,
}  # fmt: skip


@pytest.mark.parametrize("what", HARMLESS)
def test_what_no_text_and_no_id_can_show_is_no_difference(what: str) -> None:
    assert differences(student(), changed(HARMLESS[what])) == []


def other_piece(tables: JSON) -> None:
    vocabulary = tables["model"]["vocab"]
    one, other = list(vocabulary)[5:7]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]


def one_more(tables: JSON) -> None:
    known = tables["added_tokens"]
    highest = max([*(token["id"] for token in known), *tables["model"]["vocab"].values()])
    known.append({**known[0], "id": highest + 1, "content": "<think>"})


def one_less(tables: JSON) -> None:
    tables["added_tokens"].pop()


def greedy_space(tables: JSON) -> None:
    tables["added_tokens"][0]["lstrip"] = True


HARMFUL: dict[str, tuple[Callable[[JSON], None], str]] = {
    "ids that name other pieces": (other_piece, "to the student and"),
    "a piece more": (one_more, "'<think>' is id"),
    "a piece less": (one_less, "'nothing' to the teacher"),
    "lower case": (otherwise(normalizer={"type": "Lowercase"}), "to the student and"),
    "normal forms": (otherwise(normalizer={"type": "NFKC"}), "to the student and"),
    "a marker that takes the space before it": (greedy_space, "to the student and"),
}


@pytest.mark.parametrize("what", HARMFUL)
def test_what_a_text_or_an_id_can_show_is_shown(what: str) -> None:
    change, words = HARMFUL[what]
    found = differences(student(), changed(change))
    assert 1 <= len(found) <= 3
    assert words in found[0]
    assert "\n" not in "".join(found)


def test_a_merge_that_only_the_teacher_has_is_shown() -> None:
    """It is no added token, and no pair of pieces that are drawn by chance spells it."""

    def without_late_ones(tables: JSON) -> None:
        tables["added_tokens"] = [
            token for token in tables["added_tokens"] if token["id"] < len(tables["model"]["vocab"])
        ]

    ours = changed(without_late_ones)
    letters = sorted(piece for piece in ours.pieces.values() if len(piece) > 1 and piece.isascii() and piece.isalpha())
    apart = ((one, other) for one in letters for other in letters)
    one, other = next(pair for pair in apart if ours.encode("".join(pair)) == [ours.id_of(piece) for piece in pair])

    def one_more_merge(tables: JSON) -> None:
        tables["model"]["vocab"][one + other] = len(tables["model"]["vocab"])
        tables["model"]["merges"].append([one, other])

    teacher = changed(one_more_merge, ours._spec)
    assert ours.pieces.items() < teacher.pieces.items()
    assert f"'{one}{other}'={ours.vocab_size} to the teacher" in differences(ours, teacher)[0]


def test_real_tokenizers_are_like_themselves_and_like_no_other(shared_tokenizers: dict[str, Path]) -> None:
    """Whatever stands around its tables: a file that was written again is another file."""
    names = ["qwen2.5", "llama3.1", "mistral-7b-v0.3"]
    files = {name: load_model_files(str(shared_tokenizers[name])) for name in names}
    loaded = {name: load_tokenizer(one) for name, one in files.items()}
    for name, one in files.items():
        again = Tokenizer(json.dumps(json.loads(one.tokenizer_json), indent=1, sort_keys=True))
        assert again.hash != loaded[name].hash
        assert differences(loaded[name], again) == []
        for other in names:
            assert bool(differences(loaded[name], loaded[other])) == (name != other)


@pytest.mark.parametrize("name", ["qwen2.5", "mistral-7b-v0.3"])
def test_a_normalizer_of_a_real_one_counts(name: str, shared_tokenizers: dict[str, Path]) -> None:
    """The same vocabulary, the same merges: a text becomes other ids."""
    spec = load_model_files(str(shared_tokenizers[name])).tokenizer_json
    ours = Tokenizer(spec)
    found = differences(ours, changed(otherwise(normalizer={"type": "NFKC"}), spec))
    assert found
    assert "to the student and" in found[0]


def test_merges_in_another_order_count() -> None:
    def shuffled(tables: JSON) -> None:
        merges = tables["model"]["merges"]
        merges[: len(merges) // 2] = merges[: len(merges) // 2][::-1]

    folders = tokenizer_folders()
    if "qwen2.5" not in folders:
        pytest.skip("no ../shared/tokenizers beside the repository")
    spec = load_model_files(str(folders["qwen2.5"])).tokenizer_json
    assert differences(Tokenizer(spec), changed(shuffled, spec))
