"""An engine that takes its time: the scripted one behind vLLM's HTTP, at so many seconds a token."""

from __future__ import annotations

import sys

from bench.engine import CLOSE, CONTEXT, MODEL
from bench.listening import listen
from bench.talk import Speech, loaded_tokenizer
from stenograph.engine.script import Script
from stenograph.engine.scripted import ScriptedEngine
from stenograph.engine.scripted_server import ScriptedServer

REPLIES = 16
WORDS = 8


def main(seconds: float) -> None:
    """Each reply begins with a word: white space, or half a character, would rightly be held back."""
    words = loaded_tokenizer()
    speech = Speech(words, seed=-1)
    replies = tuple(f"Well, {speech.step(WORDS)['content']}" for _ in range(REPLIES))
    script = Script(
        model=MODEL,
        max_model_len=CONTEXT,
        replies=replies,
        cut=0,
        eos=words.added[CLOSE],
        first_delay=seconds,
        delay=seconds,
    )
    listen(ScriptedServer(ScriptedEngine(script, words)).application)


if __name__ == "__main__":
    main(float(sys.argv[1]))
