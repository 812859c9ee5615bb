"""OpenAI's Agents SDK: program TASK, with the base URL in OPENAI_BASE_URL."""

import sys
from pathlib import Path

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")
set_tracing_disabled(True)


@function_tool
def read_file(name: str) -> str:
    """Reads a file of the working folder.

    Args:
        name: The file's name.
    """
    return Path(name).read_text()


agent = Agent(name="reader", instructions="You find things out.", tools=[read_file], model="policy")
print(Runner.run_sync(agent, sys.argv[1]).final_output)
