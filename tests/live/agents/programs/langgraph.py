"""LangGraph: program TASK, with the base URL in OPENAI_BASE_URL."""

import sys
from pathlib import Path

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


def read_file(name: str) -> str:
    """Reads a file of the working folder."""
    return Path(name).read_text()


agent = create_react_agent(ChatOpenAI(model="policy"), [read_file], prompt="You find things out.")
print(agent.invoke({"messages": [("user", sys.argv[1])]})["messages"][-1].content)
