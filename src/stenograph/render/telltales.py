"""What a template is shown to see what it writes around it: replies of every shape, in tell-tale words."""

from __future__ import annotations

from stenograph.core import JSON, Message, ToolCall

ASKED = Message("user", "zqasked")
SAYS, THINKS = "zqsays", "zqthinks"
NAMES = ("zqone", "zqtwo")
IDS = ("zqcallnr1", "zqcallnr2")
KEYS, VALUES = ("zqkey", "zqlast"), ("zqval", "")
"""The last argument is empty, as the one by which a stand-in's arguments are marked."""


def returned(place: int) -> Message:
    return Message("tool", "zqreturned", tool_call_id=IDS[place], name=NAMES[place])


def tool(name: str) -> dict[str, JSON]:
    argument = {"type": "string", "description": "zqtext"}
    parameters = {"type": "object", "properties": dict.fromkeys(KEYS, argument), "required": [KEYS[0]]}
    return {"type": "function", "function": {"name": name, "description": "zqtext", "parameters": parameters}}


TOOLS = (tool(NAMES[0]), tool(NAMES[1]))


def reply(*, says: bool = False, thinks: bool = False, calls: int = 0) -> Message:
    made = tuple(ToolCall(IDS[n], NAMES[n], dict(zip(KEYS, VALUES, strict=True))) for n in range(calls))
    return Message("assistant", SAYS if says else None, THINKS if thinks else None, made)
