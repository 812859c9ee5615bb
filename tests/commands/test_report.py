"""`stenograph report`, as somebody runs it on what a gateway has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from stenograph.assets import smollm2
from stenograph.cli import main
from stenograph.commands.report import require_spelt
from stenograph.errors import ConfigError
from stenograph.export.sample import samples
from stenograph.store.sqlite import SqliteStore
from tests.export.trees import FACTS, call, ids, part, turn
from tests.stage import models
from tests.stage.stage import Stage, user


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.model(models.ALWAYS)


async def test_a_store_becomes_one_file(model: models.Model, tmp_path: Path) -> None:
    async with Stage(model, SqliteStore(tmp_path)) as stage:
        await stage.say("seen", [user("hello")])
    page = tmp_path / "report.html"
    assert main(["report", "--store", str(tmp_path), "--out", str(page)]) == 0
    assert '"seen"' in page.read_text()


async def test_a_tokenizer_that_is_not_the_records_own_is_told(
    model: models.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Stage(model, SqliteStore(tmp_path / "store")) as stage:
        await stage.say("seen", [user("hello")])
    other = tmp_path / "other"
    other.mkdir()
    (other / "tokenizer.json").write_text(smollm2.read().tokenizer_json + "\n")
    command = ["report", "--store", str(tmp_path / "store"), "--out", str(tmp_path / "report.html")]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "--tokenizer", str(other)]) == 0
    assert "another tokenizer file" in capsys.readouterr().err


def test_ids_of_another_model_are_not_spelt_as_words_that_nobody_said(model: models.Model) -> None:
    tokenizer = model.tokenizer
    last = tokenizer.vocab_size - 1
    require_spelt(samples(FACTS, [turn(call("a", context=ids(1, last)), 0, [part(1)])]), tokenizer)
    foreign = samples(FACTS, [turn(call("a", context=ids(1, last + 1)), 0, [part(1)])])
    with pytest.raises(ConfigError, match="--tokenizer"):
        require_spelt(foreign, tokenizer)
