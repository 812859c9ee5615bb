"""mini-swe-agent: program TASK, with the base URL in OPENAI_BASE_URL."""

import sys

import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import builtin_config_dir
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

config = yaml.safe_load((builtin_config_dir / "mini.yaml").read_text())
model = LitellmModel(model_name="openai/policy", cost_tracking="ignore_errors", **config["model"])
prompts = {name: config["agent"][name] for name in ("system_template", "instance_template")}
print(DefaultAgent(model, LocalEnvironment(), **prompts).run(sys.argv[1]))
