"""Pydantic AI: program TASK, with the base URL in OPENAI_BASE_URL."""

import sys
from pathlib import Path

from pydantic_ai import Agent

agent = Agent("openai-chat:policy", instructions="You find things out.")


@agent.tool_plain
def read_file(name: str) -> str:
    """Reads a file of the working folder."""
    return Path(name).read_text()


print(agent.run_sync(sys.argv[1]).output)
