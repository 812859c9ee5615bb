"""smolagents: program TASK, with the base URL in OPENAI_BASE_URL."""

import os
import sys
from pathlib import Path

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def read_file(name: str) -> str:
    """Reads a file of the working folder.

    Args:
        name: The file's name.
    """
    return Path(name).read_text()


model = OpenAIModel("policy", api_base=os.environ["OPENAI_BASE_URL"], api_key="EMPTY")
print(ToolCallingAgent([read_file], model).run(sys.argv[1]))
