"""llama.cpp's server in a process of its own, started by `llama_process` as `python -m stenograph.engine.llama_server`.

Loading a model holds Python's interpreter lock, for a second or for minutes, and a file that llama.cpp chokes on ends
the process that it is in. Neither may happen to the gateway.

Settings come as a line of JSON on stdin; once the model is loaded the address goes to stdout as another. The process
lives until stdin is closed, which also happens when its parent dies.
"""

from __future__ import annotations

import sys

import msgspec
import xllamacpp

from stenograph.engine.llama_settings import Ready, Settings

ERRORS_ONLY = 1


def parameters(settings: Settings) -> xllamacpp.CommonParams:
    chosen = xllamacpp.CommonParams()
    chosen.model.path = settings.model
    chosen.api_keys = [settings.api_key]
    chosen.n_parallel = settings.slots
    chosen.n_ctx = settings.slots * settings.context
    chosen.cpuparams.n_threads = settings.threads
    chosen.cpuparams_batch.n_threads = settings.threads
    # A stream occupies one, one that its caller left for a moment longer, and a health check needs one at any time.
    chosen.n_threads_http = 2 * settings.slots + 2
    # Prompts are cached in the slots; by default up to 8 GB of them are kept beside.
    chosen.cache_ram_mib = 0
    # Would load the model twice, and shrink the context in silence where memory is short.
    chosen.fit_params = False
    chosen.ctx_shift = False
    chosen.ui = False
    chosen.verbosity = ERRORS_ONLY
    return chosen


def main() -> None:
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    try:
        server = xllamacpp.Server(parameters(settings))
    except RuntimeError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(Ready(server.listening_address)) + b"\n")
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
