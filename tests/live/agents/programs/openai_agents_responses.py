"""OpenAI's Agents SDK as it comes, over Responses: program TASK HOW, with the base URL in OPENAI_BASE_URL.

HOW it remembers: `items` sends the whole history again, `previous` names the response before, `stream` is `items`
streamed.
"""

import asyncio
import sys
from pathlib import Path

from agents import Agent, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def read_file(name: str) -> str:
    """Reads a file of the working folder.

    Args:
        name: The file's name.
    """
    return Path(name).read_text()


async def main(task: str, how: str) -> None:
    agent = Agent(name="reader", instructions="You find things out.", tools=[read_file], model="policy")
    if how == "stream":
        result = Runner.run_streamed(agent, task)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, task, auto_previous_response_id=how == "previous")
    print(result.final_output)


asyncio.run(main(*sys.argv[1:]))
