"""The command line. `--help` answers at once: what a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from stenograph.errors import StenographError
from stenograph.export.formats.table import FORMATS
from stenograph.version import __version__

EPILOG = """examples:
  stenograph demo                                        a real model on this machine, no server needed
  stenograph probe Qwen/Qwen3-8B                         what its chat template will do to a rollout
  stenograph serve --engine local=smollm2                the same model behind an OpenAI-compatible gateway
  stenograph serve --engine vllm=http://127.0.0.1:8000   your own engine
  stenograph export --store stenograph-store --format jsonl --out samples.jsonl
"""


KINDS = "vllm=URL, sglang=URL, llamacpp=URL, local=GGUF_FILE, local=smollm2, torch=FOLDER, scripted=[FILE]"


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    try:
        return _run(parsed)
    except StenographError as error:
        print(f"stenograph: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(parsed: argparse.Namespace) -> int:
    options = {key: value for key, value in vars(parsed).items() if value is not None and key != "command"}
    if parsed.command == "serve":
        from stenograph.commands import serve

        return serve.run(options)
    if parsed.command == "export":
        from stenograph.commands import export

        return export.run(options)
    if parsed.command == "report":
        from stenograph.commands import report

        return report.run(options)
    if parsed.command == "verify":
        from stenograph.commands import verify

        return verify.run(options)
    if parsed.command == "score":
        from stenograph.commands import score

        return score.run(options)
    if parsed.command == "probe":
        from stenograph.commands import probe

        return probe.run(options)
    from stenograph.commands import demo

    return demo.run(options)


class Parser(argparse.ArgumentParser):
    """A wrong flag gets one line, as every other mistake does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stenograph",
        description="Records what agents' models really sampled: token ids, logprobs, masks, ready to train on.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"stenograph {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _serve(commands)
    _export(commands)
    _verify(commands)
    _score(commands)
    _probe(commands)
    _report(commands)
    _demo(commands)
    return parser


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def _serve(commands: Commands) -> None:
    serve = commands.add_parser("serve", help="run the gateway", description="Runs the gateway until SIGTERM.")
    add = serve.add_argument
    add(
        "--engine",
        action="append",
        metavar="KIND=WHERE",
        help=f"{KINDS}; may be repeated, for one model on several engines",
    )
    add("--model", metavar="NAME", help="the name agents ask for (default: what the engine says)")
    add("--model-alias", action="append", metavar="ALIAS", help="another name for it; may be repeated")
    add("--tokenizer", metavar="DIR_OR_NAME", help="a folder or a hub name (default: what the engine says or brings)")
    add("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    add("--port", type=int, metavar="PORT", help="0 picks a free one (default: 9000)")
    add("--store", metavar="DIR", help="where the record is kept (default: stenograph-store)")
    add(
        "--history",
        choices=("template", "verbatim"),
        help="where a template rewrites history: follow it and fork, or keep what was sampled (default: template)",
    )
    add(
        "--reasoning",
        choices=("restore", "strict"),
        help="reasoning that an agent does not send back: put back, or not (default: restore)",
    )
    add("--tool-parser", metavar="auto|none|NAME", help="how tool calls are read (default: auto, by the template)")
    add("--reasoning-parser", metavar="auto|none|NAME", help="how reasoning is read (default: auto)")
    add("--chat-template", metavar="FILE", help="a Jinja template in place of the tokenizer's own")
    add("--chat-template-kwargs", metavar="JSON", help="arguments for the template of every call")
    add(
        "--teacher",
        action="append",
        metavar="NAME=KIND=WHERE",
        help="scores samples where it is asked to; may be repeated; [[teacher]] in the file can say more",
    )
    add("--in-flight", type=int, metavar="N", help="choices that one engine samples at once; more wait (default: 256)")
    add("--default-session", metavar="ID", help="the session of calls that name none")
    add("--grace", type=float, metavar="SECONDS", help="how long a call goes on when its caller is gone (default: 5)")
    add(
        "--heartbeat",
        type=float,
        metavar="SECONDS",
        help="white space before a JSON answer, so often, for tunnels that cut idle connections (default: never)",
    )
    add("--admin-key", metavar="KEY", help="needed for session calls, and makes session keys needed")
    add("--max-open-sessions", type=int, metavar="N", help="more are refused with 429 (default: 100000)")
    add("--max-calls", type=int, metavar="N", help="calls under way at once; more are refused with 429 (default: 8192)")
    add("--max-body-bytes", type=int, metavar="N", help="longer bodies are refused (default: 67108864)")
    add("--config", metavar="FILE.toml", help="the same settings in a file; flags win")  # fmt: skip


def _export(commands: Commands) -> None:
    export = commands.add_parser(
        "export",
        help="write training samples",
        description="Writes a store's samples.",
        epilog="\n".join(["formats:", *(f"  {name:<10} {format.about}" for name, format in FORMATS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _store_and_sessions(export)
    export.add_argument("--format", required=True, choices=tuple(FORMATS), metavar="FORMAT", help="as listed below")
    export.add_argument("--out", metavar="FILE|-", default="-", help="a file, or - for standard output (default: -)")
    export.add_argument("--finished", action="store_true", help="only sessions that have ended")
    export.add_argument("--shared", choices=("once", "every"), default="once",
        help="train a turn that several branches share in one of them, or in each (default: once)")  # fmt: skip
    export.add_argument("--branches", choices=("main", "all"),
        help="of a session with several branches: the main one, or each as a row (default: all, where the format says "
        "which rollout a row is of; refused elsewhere)")  # fmt: skip
    export.add_argument("--exclude", action="append", metavar="RULE",
        help="leave out: side-calls, max-tokens=N, fork=REASON, truncated, unrewarded, role=ROLE; "
        "may be repeated")  # fmt: skip

    export.add_argument("--teacher", action="append", metavar="NAME",
        help="with what this teacher has said of them (see `stenograph score`); may be repeated")  # fmt: skip


def _score(commands: Commands) -> None:
    score = commands.add_parser(
        "score",
        help="have a teacher score a store's samples",
        description="Asks a teacher how likely what was sampled is, and what it finds likelier, and keeps that in the "
        "store for `export --teacher`. What is there already is not asked again. Exits with 1 where a sample could "
        "not be scored.",
    )
    _store_and_sessions(score)
    score.add_argument("--teacher", action="append", metavar="NAME=KIND=WHERE",
        help="vllm=URL, sglang=URL, torch=FOLDER, with a name in front; may be repeated")  # fmt: skip
    score.add_argument("--top-k", type=int, metavar="K", help="alternatives at each position (default: 1)")
    score.add_argument("--positions", choices=("sampled", "all"),
        help="of what was sampled, or of the context too (default: sampled)")  # fmt: skip
    score.add_argument("--tokenizer", metavar="DIR_OR_NAME",
        help="the student's (default: the teacher's, where the samples were recorded with that very one)")  # fmt: skip
    score.add_argument(
        "--config", metavar="FILE.toml", help="the file of `serve`, for its [[teacher]]s and its template"
    )


def _verify(commands: Commands) -> None:
    verify = commands.add_parser(
        "verify",
        help="score a store's samples again, and compare",
        description="Asks an engine how likely what was sampled is, and compares that with what was recorded. Exits "
        "with 1 where a span differs by more than the tolerance, or nothing could be compared.",
    )
    _store_and_sessions(verify)
    verify.add_argument("--engine", required=True, metavar="KIND=WHERE", help="vllm=URL, sglang=URL, torch=FOLDER")
    verify.add_argument("--tolerance", type=float, default=0.05, metavar="NATS",
        help="mean absolute difference of a span's logprobs (default: 0.05)")  # fmt: skip
    verify.add_argument("--weights", metavar="VERSION", help="which the engine has, where it does not say so itself")
    verify.add_argument("--tokenizer", metavar="DIR_OR_NAME", help="to show tokens (default: what the engine says)")


def _probe(commands: Commands) -> None:
    probe = commands.add_parser(
        "probe",
        help="what a model's chat template does to a rollout",
        description="Tries out a model's chat template: where it appends, what it does to reasoning, what that costs.",
    )
    probe.add_argument("model", metavar="DIR_OR_NAME", help="a folder, a GGUF file, a hub name, or smollm2")
    probe.add_argument("--json", action="store_true", help="the same for machines")


def _report(commands: Commands) -> None:
    report = commands.add_parser("report", help="one HTML file to look at", description="Shows a store's samples.")
    _store_and_sessions(report)
    report.add_argument("--out", required=True, metavar="FILE.html", help="where to write it")
    report.add_argument(
        "--tokenizer", metavar="DIR_OR_NAME", help="the model's, to spell the tokens with (default: smollm2)"
    )


def _store_and_sessions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", required=True, metavar="DIR", help="the folder that `serve --store` wrote")
    parser.add_argument("--session", action="append", metavar="ID", help="only this one; may be repeated")


def _demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo", help="see it work", description="Rollouts of a small agent on the embedded model, checked and shown."
    )
    demo.add_argument("--rollouts", type=int, default=8, metavar="N", help="how many (default: 8)")
    demo.add_argument("--out", default="demo", metavar="DIR", help="where samples and report go (default: demo)")
