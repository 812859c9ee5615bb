"""Rollouts of every case through OpenRLHF's own code, in its own environment: `python train.py TOKENIZER FOLDER`.

Ray, `RolloutRayActor`, `SamplesGenerator`, `Experience`, `RemoteExperienceMaker` and `PolicyLoss` are the real ones.
What is not there is vLLM (the folder `stubs`), and what needs a GPU to be imported. Writes FOLDER/told.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NEEDS_A_GPU = ("datasets", "deepspeed", "flash_attn", "torchdata")
MAX_LENGTH = 512
ROLLOUTS = 2
SAMPLING = {"temperature": 0.75, "top_p": 1.0, "max_new_tokens": None, "max_len": MAX_LENGTH}


class Absent:
    """Finds what only has to be importable."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if name.split(".")[0] in NEEDS_A_GPU else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module)["__getattr__"] = _nothing
        return module

    def exec_module(self, module: ModuleType) -> None: ...


def _nothing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return object


sys.meta_path.append(Absent())

import ray  # noqa: E402
import torch  # noqa: E402
from openrlhf.datasets.prompts_dataset import preprocess_data  # noqa: E402
from openrlhf.models.loss import PolicyLoss  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.trainer.ray.vllm_engine import RolloutRayActor  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

ARGS = SimpleNamespace(
    algo=SimpleNamespace(
        advantage=SimpleNamespace(
            estimator="reinforce", gamma=1.0, lambd=1.0, no_std_norm=False, is_correction_level="token"
        )
    ),
    rollout=SimpleNamespace(n_samples_per_prompt=ROLLOUTS, micro_batch_size=ROLLOUTS, max_new_tokens=None),
    train=SimpleNamespace(dynamic_batch_enable=False),
    reward=SimpleNamespace(
        clip_range=None, overlong_buffer_len=None, overlong_penalty_factor=1.0, stop_properly_penalty_coef=None
    ),
)


def actor(tokenizer: str, folder: Path, name: str, agent: Path) -> Any:
    started: Any = RolloutRayActor.options(num_cpus=0)
    return started.remote(
        model=tokenizer,
        script=str(folder / "script.toml"),
        log=str(folder / f"{name}.jsonl"),
        agent_func_path=str(agent),
        num_gpus=0,
        distributed_executor_backend="uni",
        logprobs_mode="processed_logprobs",
        max_logprobs=1,
    )


def asked(generator: Any, prompt: str, label: str) -> Any:
    images = [["cat.png"]] if label == "pictured" else None
    rollouts = 2 * ROLLOUTS if label == "case_17" else ROLLOUTS
    (ref,) = generator._dispatch_prompts_to_vllm(
        [prompt], [label], images=images, n_samples_per_prompt=rollouts, **SAMPLING
    )
    return ref


def trained(generator: Any, responses: list[Any], pad: int) -> list[dict[str, Any]]:
    """From responses to gradients, micro batch by micro batch, as the trainer does it."""
    strategy = SimpleNamespace(args=ARGS)
    maker = RemoteExperienceMaker(
        None, None, None, None, SimpleNamespace(value=0.0), strategy, SimpleNamespace(pad_token_id=pad)
    )
    experiences = [generator._process_response_into_experience(response, **SAMPLING) for response in responses]
    batches = maker.split_rollout_samples(experiences)
    for batch in batches:
        batch.kl = torch.zeros_like(batch.action_mask, dtype=torch.float32)
    batches = maker.compute_advantages_and_returns(batches)
    actions = sum(int(batch.action_mask.sum()) for batch in batches)
    return [_losses(batch, actions) for batch in batches]


def _losses(batch: Any, actions: int) -> dict[str, Any]:
    """The policy has not moved: what it computes anew is what was recorded, so each ratio is 1 where that is right."""
    recorded = batch.rollout_log_probs
    computed = recorded.clone().requires_grad_()
    loss, *_ = PolicyLoss(is_correction_level="token")(
        computed, recorded, batch.advantages, batch.action_mask, recorded, batch_num_tokens=actions
    )
    loss.backward()
    return {
        "loss": loss.item(),
        "sequences": batch.sequences.tolist(),
        "action_mask": batch.action_mask.long().tolist(),
        "rollout_log_probs": recorded.tolist(),
        "moved": (computed.grad != 0).long().tolist(),
        "info": {name: value.tolist() for name, value in batch.info.items()},
    }


def main(tokenizer: str, folder: Path) -> dict[str, Any]:
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    agents = {
        "one": HERE / "agents.py",
        "upstream": HERE / "upstream_agent.py",
        "example": ROOT / "examples" / "openrlhf" / "agent.py",
    }
    generators = {
        name: SamplesGenerator(SimpleNamespace(args=ARGS), None, None, loaded, [actor(tokenizer, folder, name, agent)])
        for name, agent in agents.items()
    }
    prompts: dict[str, str] = json.loads((folder / "cases.json").read_text())
    templated = {"input_key": "input", "apply_chat_template": loaded.apply_chat_template}
    prompts["case_18"], _ = preprocess_data({"input": prompts["case_18"]}, **templated)
    refs = {label: asked(generators["one"], prompt, label) for label, prompt in prompts.items()}
    refs["example"] = asked(generators["example"], "What is one and one?", "two")
    refs["upstream"] = asked(generators["upstream"], "What is it like?", "a label")
    responses = {label: ray.get(ref) for label, ref in refs.items()}
    every = [one for group in responses.values() for one in group]
    batches = iter(trained(generators["one"], every, loaded.pad_token_id))
    return {
        label: {"responses": group, "batches": [next(batches) for _ in range(len(group) // ROLLOUTS)]}
        for label, group in responses.items()
    }


if __name__ == "__main__":
    where = Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="ray") as short:  # sockets lie in it, whose paths are bounded
        ray.init(num_cpus=2, object_store_memory=80 << 20, include_dashboard=False, _temp_dir=short)
        try:
            told = main(sys.argv[1], where)
        finally:
            ray.shutdown()
    (where / "told.json").write_text(json.dumps(told))
