"""From settings to a house that can take turns: engine connected, tokenizer and template loaded, store open."""

from __future__ import annotations

import asyncio
import secrets
import string
import time
from pathlib import Path
from typing import TypeAlias

from stenograph.assets.load import gguf_file, load_model_files, load_tokenizer
from stenograph.assets.model import ModelFiles
from stenograph.assets.smollm2 import NAME as SMOLLM2
from stenograph.config import EngineSpec, Settings
from stenograph.core import EngineInfo
from stenograph.engine.engine import Engine
from stenograph.errors import ConfigError
from stenograph.house import House
from stenograph.render.grammar import CALL_PARSERS, REASONING_PARSERS, Parsers
from stenograph.render.renderer import Renderer
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.store import Store

IN_MEMORY = ":memory:"
ALPHABET = string.ascii_letters + string.digits
CALL_ID_LENGTH = 9
"""What Mistral's templates insist on; every other takes it too."""


async def furnished(settings: Settings, log: Path | None = None, own: Engine | None = None) -> House:
    """`log`: where an embedded engine writes down what it was sent and returned. `own`: an engine that the caller
    brings, in place of those that the settings name."""
    connected = _served(own, settings) if own is not None else _connected(_only_engine(settings), settings, log)
    engine, info, files, tokenizer = await connected
    try:
        renderer = await asyncio.to_thread(renderer_of, settings, files, tokenizer)
        store = open_store(settings.store)
    except BaseException:
        await engine.close()
        raise
    return House(
        engine=engine,
        info=info,
        renderer=renderer,
        store=store,
        now=time.time,
        new_id=new_call_id,
        history=settings.history,
        reasoning=settings.reasoning,
    )


def new_call_id() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CALL_ID_LENGTH))


def open_store(where: str) -> Store:
    if where == IN_MEMORY:
        from stenograph.store.memory import MemoryStore

        return MemoryStore()
    from stenograph.store.sqlite import SqliteStore

    return SqliteStore(Path(where))


# --------------------------------------------------------------------------------------------------------- engines


Connected: TypeAlias = tuple[Engine, EngineInfo, ModelFiles, Tokenizer]


def _only_engine(settings: Settings) -> EngineSpec:
    specs = settings.engines()
    if len(specs) != 1:
        raise ConfigError("give one --engine KIND=WHERE (several are for a later version)")
    return specs[0]


async def _connected(spec: EngineSpec, settings: Settings, log: Path | None) -> Connected:
    if spec.kind == "vllm":
        return await _served(_vllm(spec), settings)
    files = await asyncio.to_thread(load_model_files, settings.tokenizer or _brought_by(spec))
    tokenizer = await asyncio.to_thread(load_tokenizer, files)
    embedded = _local(spec, files, tokenizer, log) if spec.kind == "local" else _scripted(spec, tokenizer, log)
    return embedded, await _started(embedded), files, tokenizer


async def _started(engine: Engine) -> EngineInfo:
    try:
        return await engine.start()
    except BaseException:
        await engine.close()
        raise


async def _served(engine: Engine, settings: Settings) -> Connected:
    """An embedded engine brings its tokenizer; any other is asked first which model it serves."""
    info = await _started(engine)
    try:
        files, tokenizer = await asyncio.to_thread(_files_of_server, settings, info)
    except BaseException:
        await engine.close()
        raise
    return engine, info, files, tokenizer


def _vllm(spec: EngineSpec) -> Engine:
    from stenograph.engine.vllm import VllmEngine

    return VllmEngine(spec.where)


def _local(spec: EngineSpec, files: ModelFiles, tokenizer: Tokenizer, log: Path | None) -> Engine:
    from stenograph.engine.local import LocalEngine

    return LocalEngine(str(gguf_file(spec.where)), tokenizer, model=files.name, log=log)


def _scripted(spec: EngineSpec, tokenizer: Tokenizer, log: Path | None) -> Engine:
    from stenograph.engine.script import load
    from stenograph.engine.scripted import DEFAULT, ScriptedEngine

    return ScriptedEngine(load(Path(spec.where)) if spec.where else DEFAULT, tokenizer, log=log)


def _brought_by(spec: EngineSpec) -> str:
    return spec.where if spec.kind == "local" else SMOLLM2


def _files_of_server(settings: Settings, info: EngineInfo) -> tuple[ModelFiles, Tokenizer]:
    if settings.tokenizer is not None:
        files = load_model_files(settings.tokenizer)
    else:
        try:
            files = load_model_files(info.model)
        except ConfigError as error:
            detail = f"the engine serves {info.model}, and that names no tokenizer here ({error})"
            raise ConfigError(f"{detail}: give --tokenizer a folder or a hub name") from error
    return files, load_tokenizer(files)


# --------------------------------------------------------------------------------------------------------- renderer


def renderer_of(settings: Settings, files: ModelFiles, tokenizer: Tokenizer) -> Renderer:
    source, tool_source = _template_sources(settings, files)
    return Renderer(
        tokenizer,
        Template(source, files.special_tokens),
        Template(tool_source, files.special_tokens) if tool_source else None,
        _parsers(settings),
        files.eos_token,
        settings.chat_template_kwargs,
    )


def _parsers(settings: Settings) -> Parsers:
    for flag, name, known in (
        ("--tool-parser", settings.tool_parser, CALL_PARSERS),
        ("--reasoning-parser", settings.reasoning_parser, REASONING_PARSERS),
    ):
        if name not in ("auto", "none", *known):
            raise ConfigError(f"{flag} {name}: expected auto, none, {', '.join(known)}")
    return Parsers(settings.tool_parser, settings.reasoning_parser)


def _template_sources(settings: Settings, files: ModelFiles) -> tuple[str, str | None]:
    if settings.chat_template is not None:
        try:
            return Path(settings.chat_template).read_text(), None
        except OSError as error:
            raise ConfigError(f"--chat-template {settings.chat_template}: {error.strerror}") from error
    if files.chat_template is None:
        raise ConfigError(f"{files.name} brings no chat template: give one with --chat-template FILE")
    return files.chat_template, files.tool_chat_template
