"""A tokenizer that is only an object: what it does is all that is known of it."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stenograph import ConfigError, Gateway
from stenograph.assets import smollm2
from stenograph.assets.load import load_tokenizer
from stenograph.assets.objects import ObjectTemplate, ObjectTokenizer
from stenograph.assets.trainers import brought
from stenograph.engine.given import Answer, GivenEngine
from stenograph.render.literal import Literals
from stenograph.render.tokenizer import Tokenizer

BOS, EOS = 1, 2
OPEN, CLOSE = (load_tokenizer(smollm2.read()).added[marker] for marker in ("<|im_start|>", "<|im_end|>"))


class Letters:
    """A token a character; its decoder leaves out what cannot be seen, and its template knows no calls."""

    bos_token_id = BOS
    eos_token_id = EOS

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [BOS] * add_special_tokens + [ord(char) for char in text]

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(chr(id) for id in ids if id > 31)

    def apply_chat_template(
        self, messages: Any, tokenize: bool = False, add_generation_prompt: bool = True, tools: Any = None
    ) -> Any:
        offered = f"<tools>{json.dumps(tools)}</tools>\n" if tools else ""
        said = "".join(f"<{one['role']}>{one['content'] or ''}</{one['role']}>" for one in messages)
        text = offered + said + "<assistant>" * add_generation_prompt
        return self.encode(text) if tokenize else text


class Slow:
    """As transformers' slow tokenizers: real tokens, by `encode` and `decode` alone."""

    def __init__(self) -> None:
        files = smollm2.read()
        self._inner = fast()
        self.chat_template = files.chat_template
        self.eos_token, self.eos_token_id = "<|im_end|>", self._inner.added["<|im_end|>"]
        self.added_tokens_decoder = {id: word for word, id in self._inner.added.items()}
        self.clean_up_tokenization_spaces = True
        self.model_max_length = 10**30

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return self._inner.encode(text, special=add_special_tokens)

    def decode(self, ids: list[int], skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        assert not skip_special_tokens
        assert not clean_up_tokenization_spaces
        return self._inner.decode(ids)

    def get_vocab(self) -> dict[str, int]:
        return {"last": self._inner.vocab_size - 1}


@functools.cache
def fast() -> Tokenizer:
    return load_tokenizer(smollm2.read())


@functools.cache
def slow() -> ObjectTokenizer:
    return ObjectTokenizer(Slow())


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXTS)
def test_it_says_what_the_same_tokenizer_from_its_file_says(text: str) -> None:
    ids = fast().encode(text)
    assert slow().encode(text) == ids
    assert slow().decode(ids) == fast().decode(ids)
    stream, known = slow().stream(), fast().stream()
    assert [stream.feed(id) for id in ids] == [known.feed(id) for id in ids]


@given(TEXTS, st.sampled_from(["<|im_end|>", "<|im_start|>", "<|endoftext|>"]))
def test_a_marker_in_a_message_is_text(text: str, marker: str) -> None:
    said = [ids_of(tokenizer, f"{text}{marker}{text}") for tokenizer in (slow(), fast())]
    assert [[id for id in ids if id in slow().control] for ids in said] == [[OPEN, CLOSE]] * 2
    assert slow().decode(said[0]) == fast().decode(said[1])


def ids_of(tokenizer: Tokenizer, message: str) -> list[int]:
    literals = Literals(tokenizer)
    return literals.encode(f"<|im_start|>{literals.mask(message)}<|im_end|>")


def test_control_tokens_may_have_no_spelling() -> None:
    letters = ObjectTokenizer(Letters())
    assert letters.special == {BOS, EOS}
    assert letters.encode("ab<|2|>c") == [97, 98, EOS, 99]
    assert letters.encode("ab", special=True) == [BOS, 97, 98]
    assert letters.decode([BOS, 97, 10, 98, EOS]) == "a\nb"
    assert letters.id_of("a") == 97
    assert letters.id_of("ab") is None
    assert (letters.text_of(EOS), letters.bytes_of(10)) == ("<|2|>", b"\n")


def test_a_vocabulary_is_as_large_as_it_says() -> None:
    assert slow().vocab_size == fast().vocab_size
    assert ObjectTokenizer(Letters()).vocab_size > 10**9


def test_a_template_in_python_gets_the_bos_that_its_tokenizer_adds_and_calls_as_text() -> None:
    letters = Letters()
    template = brought(letters).template
    assert isinstance(template, ObjectTemplate)
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": {"city": "Paris"}}}
    messages: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    text = template.render(messages, (), {}, generate=False, now=None)  # type: ignore[arg-type]
    assert text.startswith("<|1|><user>hi</user><assistant><tool_call>\n")
    assert '"arguments": {"city": "Paris"}' in text


ASKED = "<user>a\nb</user><assistant>"


async def test_a_gateway_takes_it() -> None:
    sent: list[list[int]] = []

    class Saying:
        async def generate(self, prompt: list[int], sampling: dict[str, Any], /) -> Answer:
            sent.append(prompt)
            ids = [ord(char) for char in "well\nso"]
            return {"token_ids": ids, "logprobs": [-0.5] * len(ids), "finish_reason": "stop"}

    engine = GivenEngine(Saying(), model="policy", max_model_len=4096, logprob_kind="raw")
    async with Gateway(engine=engine, tokenizer=Letters()) as gateway:
        session = gateway.session()
        client: Any = session.openai()
        asked = {"role": "user", "content": "a\nb"}
        answer = await client.chat.completions.create(model="policy", messages=[asked])
        assert answer.choices[0].message.content == "well\nso"
        await client.chat.completions.create(model="policy", messages=[asked, answer.choices[0].message, asked])
        first = [BOS, *(ord(char) for char in ASKED)]
        assert sent[0] == first
        assert sent[1] == [*first, *(ord(char) for char in f"well\nso</assistant>{ASKED}")]
        assert len(session.samples()) == 1


async def test_slow_tokenizers_bring_their_template_as_text() -> None:
    async with Gateway(engine="scripted=", tokenizer=Slow()) as gateway, Gateway(engine="scripted=") as same:
        texts = []
        for one in (gateway, same):
            session = one.session()
            client: Any = session.openai()
            await client.chat.completions.create(
                model=one.model, messages=[{"role": "user", "content": "hi"}], max_tokens=4
            )
            texts.append(one.renderer.tokenizer.decode(session.samples()[0].tokens[:-4].tolist()))
        assert texts[0] == texts[1]


def test_what_neither_encodes_nor_decodes_is_refused() -> None:
    with pytest.raises(ConfigError, match="object is neither a name nor one of transformers' fast tokenizers"):
        brought(object())
