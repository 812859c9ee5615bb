"""The 19 cases of FIELD A2, by number, through OpenRLHF's own rollout actor under Ray and its own trainer's code.

Each rollout is a right sample, which is to say what the engine's log says, or all mask, with its reason. `train.py`
plays them all in OpenRLHF's environment, once; what it writes is looked at here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from stenograph.assets.load import load_model_files, load_tokenizer
from stenograph.core import JSON
from stenograph.engine.log import LoggedCall
from stenograph.render.tokenizer import Tokenizer
from tests.conftest import NO_TOKENIZERS, ROOT, TOKENIZERS

HOME = Path(os.environ.get("STENOGRAPH_AGENTS") or Path.home() / ".cache" / "stenograph-agents") / "openrlhf"
PYTHON = HOME / "bin" / "python"
HERE = Path(__file__).parent
FAMILY = TOKENIZERS / "qwen3"
"""It thinks, and writes emojis byte by byte."""
NOT_INSTALLED = "openrlhf is not installed: tests/live/consumers/install openrlhf"
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not PYTHON.exists(), reason=NOT_INSTALLED),
    pytest.mark.skipif(not FAMILY.is_dir(), reason=NO_TOKENIZERS),
]

MAX_LENGTH = 512
ASKED = "{}: What is the weather like?"
CASES = {f"case_{number:02}": ASKED.format(f"case_{number:02}") for number in range(1, 20)} | {
    "case_13": "case_13 [the engine is slow] What is it like?",
    "case_19": "case_19 " + "word " * MAX_LENGTH,
    "silent": "silent",
    "pictured": "pictured",
}
SCRIPT = r"""
cut = 1.0
longest = 12
logprob_kind = "processed"
rules = [
  {when = 'It rains\.\n</tool_response>', say = "Take a coat."},
  {when = 'And in Paris\?', say = "It rains in Paris, too."},
  {when = 'case_03', say = "Hello there.\n\n"},
  {when = 'case_05', say = "🙂🙃🤖🦀🎈"},
  {when = 'case_04|case_15', say = '''
<think>
Look.
</think>

<tool_call>
{"name": "look", "arguments": {"city": "Paris"}}
</tool_call>'''},
]
"""
TRAINED = [name for name in CASES if name not in ("case_17", "case_18", "case_19", "silent", "pictured")]


class Case(msgspec.Struct):
    responses: list[dict[str, JSON]]
    """As `execute` returned them."""
    batches: list[dict[str, JSON]]
    """Micro batches of two, after `PolicyLoss`."""


class Told(msgspec.Struct):
    cases: dict[str, Case]
    logs: dict[str, list[LoggedCall]]
    """Of each actor's engine."""
    tokenizer: Tokenizer


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("openrlhf")
    (folder / "script.toml").write_text(SCRIPT)
    (folder / "cases.json").write_bytes(msgspec.json.encode(CASES))
    environment = {
        "HOME": str(Path.home()),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'src'}:{HERE / 'stubs'}",
        "HF_HUB_OFFLINE": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [PYTHON, HERE / "train.py", FAMILY, folder]
    trained = subprocess.run(command, env=environment, capture_output=True, timeout=600, check=False)
    assert trained.returncode == 0, trained.stderr.decode()
    logs = {path.stem: _calls(path) for path in folder.glob("*.jsonl")}
    cases = msgspec.json.decode((folder / "told.json").read_bytes(), type=dict[str, Case])
    return Told(cases, logs, load_tokenizer(load_model_files(str(FAMILY))))


def _calls(path: Path) -> list[LoggedCall]:
    return [msgspec.json.decode(line, type=LoggedCall) for line in path.read_bytes().splitlines()]


# ---------------------------------------------------------------------------------------------------- what is right


def require_right(told: Told, name: str, *, turns: int, actor: str = "one") -> list[list[LoggedCall]]:
    """Of each of its rollouts: so many spans, each of them an answer of the engine, to just what stands before it.
    Gives the calls."""
    case = told.cases[name]
    for response in case.responses:
        assert logs_of(response, "failed") == 0, response["extra_logs"]
        assert len(response["action_ranges"]) == turns
    require_batched(case)
    return [_logged(told.logs[actor], response) for response in case.responses]


def _logged(log: Sequence[LoggedCall], response: Mapping[str, JSON]) -> list[LoggedCall]:
    tokens, logprobs = response["observation_tokens"], response["rollout_log_probs"]
    assert len(logprobs) == len(tokens) <= MAX_LENGTH
    calls = []
    for start, end in response["action_ranges"]:
        said = (tokens[start:end], np.array(logprobs[start:end], np.float32).tolist())
        calls.append(next(call for call in log if call.prompt == tokens[:start] and _said(call) == said))
    on = np.zeros(len(tokens), bool)
    for start, end in response["action_ranges"]:
        on[start:end] = True
    assert not np.array(logprobs)[~on].any()
    return calls


def _said(call: LoggedCall) -> tuple[list[int], list[float]]:
    (choice,) = call.choices
    return list(choice.ids), np.array(choice.logprobs, np.float32).tolist()


def require_batched(case: Case) -> None:
    """The trainer's own tensors: its mask is our ranges, and just those tokens have a gradient."""
    for number, batch in enumerate(case.batches):
        assert np.isfinite(batch["loss"])
        assert batch["moved"] == batch["action_mask"]
        for place, response in enumerate(case.responses[2 * number : 2 * number + 2]):
            tokens = response["observation_tokens"]
            mask = np.zeros(len(tokens), int)
            for start, end in response["action_ranges"]:
                mask[start:end] = 1
            assert batch["sequences"][place][: len(tokens)] == tokens
            assert batch["action_mask"][place][: len(tokens) - 1] == mask[1:].tolist()
            kept = np.array(batch["rollout_log_probs"][place][: len(tokens) - 1], np.float32)
            assert kept.tolist() == np.array(response["rollout_log_probs"][1:], np.float32).tolist()


def require_masked(response: Mapping[str, JSON], reason: str) -> None:
    assert response["action_ranges"] == []
    assert set(response["rollout_log_probs"]) == {0.0}
    assert (response["reward"], logs_of(response, "failed"), logs_of(response, f"failed_{reason}")) == (0.0, 1, 1)


def logs_of(response: Mapping[str, JSON], name: str) -> float:
    return float(response["extra_logs"][f"stenograph_{name}"])


def text(told: Told, response: Mapping[str, JSON], span: int) -> str:
    start, end = response["action_ranges"][span]
    return told.tokenizer.decode(response["observation_tokens"][start:end])


# ----------------------------------------------------------------------------------------------------------- the cases


def test_case_01_two_clean_turns(told: Told) -> None:
    for first, second in require_right(told, "case_01", turns=2):
        assert first.sampling["temperature"] == second.sampling["temperature"] == 0.75
        assert second.prompt[: len(first.prompt)] == first.prompt


def test_case_02_ids_that_are_not_canonical(told: Told) -> None:
    require_right(told, "case_02", turns=2)
    for response in told.cases["case_02"].responses:
        start, end = response["action_ranges"][0]
        ids = response["observation_tokens"][start:end]
        assert told.tokenizer.encode(told.tokenizer.decode(ids)) != ids


def test_case_03_the_agent_strips_a_newline(told: Told) -> None:
    require_right(told, "case_03", turns=2)
    assert "there.\n\n" in text(told, told.cases["case_03"].responses[0], 0)


def test_case_04_the_agent_strips_the_thinking(told: Told) -> None:
    for _, second in require_right(told, "case_04", turns=2):
        assert "<think>\nLook.\n</think>" in told.tokenizer.decode(second.prompt)


def test_case_05_a_reply_is_cut_in_an_emoji(told: Told) -> None:
    require_right(told, "case_05", turns=2)
    assert "\ufffd" in text(told, told.cases["case_05"].responses[0], 0)


def test_case_06_a_summariser_in_the_same_session(told: Told) -> None:
    """The agent's own conversation is returned, and what that leaves out is counted."""
    for (first, second), response in zip(
        require_right(told, "case_06", turns=2), told.cases["case_06"].responses, strict=True
    ):
        assert second.prompt[: len(first.prompt)] == first.prompt
        assert (logs_of(response, "branches"), logs_of(response, "turns")) == (2, 3)
        assert logs_of(response, "left_out_tokens") > 0


def test_case_07_two_calls_at_once(told: Told) -> None:
    require_right(told, "case_07", turns=2)
    assert [logs_of(response, "branches") for response in told.cases["case_07"].responses] == [2, 2]


def test_case_08_no_call_names_the_session(told: Told) -> None:
    require_right(told, "case_08", turns=2)


def test_case_09_no_call_asks_for_logprobs(told: Told) -> None:
    require_right(told, "case_09", turns=2)
    for response in told.cases["case_09"].responses:
        assert any(response["rollout_log_probs"])


def test_case_10_a_stream(told: Told) -> None:
    require_right(told, "case_10", turns=2)


def test_case_11_too_long_then_trimmed(told: Told) -> None:
    require_right(told, "case_11", turns=2)


def test_case_12_the_engine_fails_and_the_agent_says_something_else(told: Told) -> None:
    require_right(told, "case_12", turns=2)


def test_case_13_the_client_gives_up_and_asks_again(told: Told) -> None:
    for first, _ in require_right(told, "case_13", turns=2):
        assert [call.prompt for call in told.logs["one"]].count(first.prompt) == len(told.cases["case_13"].responses)


def test_case_14_tools_three_answers_and_a_stop(told: Told) -> None:
    for first, second in require_right(told, "case_14", turns=2):
        assert '"name": "look"' in told.tokenizer.decode(first.prompt)
        assert [call.prompt for call in told.logs["one"]].count(first.prompt) == 3 * 2
        assert (first.sampling["temperature"], second.sampling["temperature"]) == (0.25, 0.75)
        assert second.sampling["stop"] == ["Paris"]
        assert told.tokenizer.decode(_said(second)[0]).endswith("Paris")
    for response in told.cases["case_14"].responses:
        assert (logs_of(response, "branches"), logs_of(response, "own_sampling")) == (3, 1)


def test_case_15_a_call_without_content_and_its_result(told: Told) -> None:
    for _, second in require_right(told, "case_15", turns=2):
        assert "<tool_response>\nIt rains.\n</tool_response>" in told.tokenizer.decode(second.prompt)


def test_case_16_executors_at_once(told: Told) -> None:
    """One of them over HTTP. What each was answered is in its own engine's log."""
    require_right(told, "case_16", turns=1, actor="one")
    require_right(told, "upstream", turns=2, actor="upstream")
    require_right(told, "example", turns=2, actor="example")


def test_case_17_one_of_four_raises(told: Told) -> None:
    case = told.cases["case_17"]
    whole = [response for response in case.responses if not logs_of(response, "failed")]
    (lost,) = (response for response in case.responses if logs_of(response, "failed"))
    require_masked(lost, "agent_error")
    assert len(whole) == 3
    for response in whole:
        assert len(_logged(told.logs["one"], response)) == 1
    require_batched(case)


def test_case_18_a_prompt_that_is_templated_already(told: Told) -> None:
    for response in told.cases["case_18"].responses:
        assert response["prompt"].startswith("<|im_start|>")
        require_masked(response, "templated_twice")
    require_batched(told.cases["case_18"])


def test_case_19_a_first_prompt_that_is_too_long(told: Told) -> None:
    for response in told.cases["case_19"].responses:
        assert len(response["observation_tokens"]) == MAX_LENGTH
        require_masked(response, "context_overflow")
    require_batched(told.cases["case_19"])


# -------------------------------------------------------------------------------------------------------- and besides


def test_an_agent_of_the_upstream_example_runs_with_another_import(told: Told) -> None:
    require_right(told, "upstream", turns=2, actor="upstream")
    for response in told.cases["upstream"].responses:
        assert (response["label"], response["reward"], response["scores"]) == ("a label", 1.0, 0.5)


def test_the_example(told: Told) -> None:
    require_right(told, "example", turns=2, actor="example")
    assert [response["extra_logs"]["tries"] for response in told.cases["example"].responses] == [2.0, 2.0]


def test_an_agent_that_makes_no_call(told: Told) -> None:
    for response in told.cases["silent"].responses:
        require_masked(response, "no_calls")


def test_images_are_refused_rollout_by_rollout(told: Told) -> None:
    for response in told.cases["pictured"].responses:
        require_masked(response, "images")


def test_every_sample_logs_the_same_scalars(told: Told) -> None:
    """Also one that failed has what the agent declared, and none has what it did not."""
    logs = [response["extra_logs"] for name in CASES for response in told.cases[name].responses]
    assert all(one.keys() == logs[0].keys() for one in logs)
    assert "calls" in logs[0]
    assert "undeclared" not in logs[0]
    assert {type(value) for one in logs for value in one.values()} == {float}


@pytest.mark.parametrize("name", TRAINED)
def test_rewards_are_each_rollouts_own(told: Told, name: str) -> None:
    assert sorted(response["reward"] for response in told.cases[name].responses) == [1.0, 2.0]
