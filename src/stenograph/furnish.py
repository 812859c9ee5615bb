"""From settings to a house that can take turns: engine connected, tokenizer and template loaded, store open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import string
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from stenograph.assets.load import gguf_file, load_model_files, load_tokenizer
from stenograph.assets.model import ModelFiles
from stenograph.assets.smollm2 import NAME as SMOLLM2
from stenograph.assets.trainers import Brought
from stenograph.config import EngineSpec, Settings
from stenograph.core import EngineInfo
from stenograph.engine.engine import Engine
from stenograph.engine.pool import Pool
from stenograph.errors import ConfigError
from stenograph.house import House
from stenograph.render.grammar import CALL_PARSERS, REASONING_PARSERS, Parsers
from stenograph.render.renderer import Renderer
from stenograph.render.template import Template
from stenograph.render.tokenizer import Tokenizer
from stenograph.store.store import Store

logger = logging.getLogger("stenograph")
IN_MEMORY = ":memory:"
ALPHABET = string.ascii_letters + string.digits
CALL_ID_LENGTH = 9
"""What Mistral's templates insist on; every other takes it too."""


async def furnished(
    settings: Settings, log: Path | None = None, own: Engine | None = None, brought: Brought | None = None
) -> House:
    """`log`: where an embedded engine writes down what it was sent and returned. `own`, `brought`: an engine, and a
    tokenizer with its template, that the caller has already, in place of those that the settings name."""
    pool, info, (files, tokenizer) = await _pooled(settings, log, own, brought)
    try:
        renderer = await asyncio.to_thread(
            renderer_of, settings, files, tokenizer, brought.template if brought else None
        )
        store = open_store(settings.store)
    except BaseException:
        await pool.close()
        raise
    _introduce(pool, files.name, settings)
    return House(
        engines=pool,
        info=info,
        renderer=renderer,
        store=store,
        now=time.time,
        new_id=new_call_id,
        history=settings.history,
        reasoning=settings.reasoning,
    )


def _introduce(pool: Pool, tokenizer: str, settings: Settings) -> None:
    """What was found out by itself: the first thing to look at where a prompt reads oddly."""
    for info in (member.info for member in pool.members):
        logger.info(
            "%s serves %s: context of %d tokens, %s logprobs",
            info.name,
            info.model,
            info.max_model_len,
            info.logprob_kind,
        )
    template = settings.chat_template or tokenizer
    logger.info("tokenizer: %s; chat template: %s; the record is in %s", tokenizer, template, settings.store)


def new_call_id() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CALL_ID_LENGTH))


def open_store(where: str) -> Store:
    if where == IN_MEMORY:
        from stenograph.store.memory import MemoryStore

        return MemoryStore()
    from stenograph.store.sqlite import SqliteStore

    return SqliteStore(Path(where))


# --------------------------------------------------------------------------------------------------------- engines


NEED_TOKENIZER = ("local", "llamacpp", "torch", "scripted")
"""Kinds that need the tokenizer before they start. Any other is asked first which model it serves."""
Loaded: TypeAlias = tuple[ModelFiles, Tokenizer]


async def _pooled(
    settings: Settings, log: Path | None, own: Engine | None, brought: Brought | None
) -> tuple[Pool, EngineInfo, Loaded]:
    specs = settings.engines()
    if own is None and not specs:
        raise ConfigError("give an --engine KIND=WHERE, or several")
    needing = next((spec for spec in specs if spec.kind in NEED_TOKENIZER), None)
    loaded = (brought.files, brought.tokenizer) if brought else None
    if loaded is None and needing is not None:
        loaded = await asyncio.to_thread(model_files, settings.tokenizer or _brought_by(needing))
    engines = [own] if own else [_engine(spec, f"{spec.kind}-{place}", loaded, log) for place, spec in enumerate(specs)]
    pool = Pool(engines, settings.in_flight)
    try:
        info = await pool.start()
        known = await asyncio.to_thread(_files_of_server, settings, info) if loaded is None else loaded
    except BaseException:
        await pool.close()
        raise
    pool.tokenizer = known[1]
    return pool, info, known


async def connected(
    spec: EngineSpec, tokenizer: str | None, name: str | None = None
) -> tuple[Engine, EngineInfo, Loaded | None]:
    """One engine by itself, and the tokenizer of its model, where one can be found."""
    needed = spec.kind in NEED_TOKENIZER
    loaded = await asyncio.to_thread(model_files, tokenizer or _brought_by(spec)) if needed else None
    engine = _engine(spec, name or f"{spec.kind}-0", loaded, None)
    try:
        info = await engine.start()
    except BaseException:
        await engine.close()
        raise
    if loaded is None:
        with contextlib.suppress(ConfigError):
            loaded = await asyncio.to_thread(model_files, tokenizer or info.model)
    return engine, info, loaded


def _engine(spec: EngineSpec, name: str, loaded: Loaded | None, log: Path | None) -> Engine:
    if spec.kind == "vllm":
        return _vllm(spec, name)
    if spec.kind == "sglang":
        return _sglang(spec, name)
    if loaded is None:
        raise ValueError(f"{name} needs a tokenizer before it starts")
    if spec.kind == "llamacpp":
        return _llamacpp(spec, name, loaded)
    if spec.kind == "torch":
        return _torch(spec, name, loaded, log)
    return _local(spec, name, loaded, log) if spec.kind == "local" else _scripted(spec, name, loaded, log)


def _vllm(spec: EngineSpec, name: str) -> Engine:
    from stenograph.engine.vllm import VllmEngine

    return VllmEngine(spec.where, name)


def _sglang(spec: EngineSpec, name: str) -> Engine:
    from stenograph.engine.sglang import SglangEngine

    return SglangEngine(spec.where, name)


def _llamacpp(spec: EngineSpec, name: str, loaded: Loaded) -> Engine:
    from stenograph.engine.llama_http import LlamaHttpEngine

    return LlamaHttpEngine(spec.where, loaded[1], name)


def _torch(spec: EngineSpec, name: str, loaded: Loaded, log: Path | None) -> Engine:
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise ConfigError("the torch engine needs torch and transformers: pip install 'stenograph[torch]'")
    from stenograph.engine.torch import TorchEngine

    files, tokenizer = loaded
    return TorchEngine(Path(spec.where), tokenizer, called=files.name, name=name, log=log)


def _local(spec: EngineSpec, name: str, loaded: Loaded, log: Path | None) -> Engine:
    from stenograph.engine.local import LocalEngine

    files, tokenizer = loaded
    return LocalEngine(str(gguf_file(spec.where)), tokenizer, model=files.name, name=name, log=log)


def _scripted(spec: EngineSpec, name: str, loaded: Loaded, log: Path | None) -> Engine:
    from stenograph.engine.script import load
    from stenograph.engine.scripted import DEFAULT, ScriptedEngine

    return ScriptedEngine(load(Path(spec.where)) if spec.where else DEFAULT, loaded[1], name=name, log=log)


def _brought_by(spec: EngineSpec) -> str:
    if spec.kind == "llamacpp":
        raise ConfigError(
            f"llamacpp={spec.where} needs --tokenizer: the GGUF file that it serves, a folder or a hub name"
        )
    return spec.where if spec.kind in ("local", "torch") else SMOLLM2


def model_files(name: str) -> Loaded:
    files = load_model_files(name)
    return files, load_tokenizer(files)


def _files_of_server(settings: Settings, info: EngineInfo) -> Loaded:
    if settings.tokenizer is not None:
        return model_files(settings.tokenizer)
    try:
        return model_files(info.model)
    except ConfigError as error:
        detail = f"the engine serves {info.model}, and that names no tokenizer here ({error})"
        raise ConfigError(f"{detail}: give --tokenizer a folder or a hub name") from error


# --------------------------------------------------------------------------------------------------------- renderer


def renderer_of(
    settings: Settings, files: ModelFiles, tokenizer: Tokenizer, template: Template | None = None
) -> Renderer:
    template, with_tools = (template, None) if template else _templates(settings, files)
    return Renderer(
        tokenizer,
        template,
        with_tools,
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


def _templates(settings: Settings, files: ModelFiles) -> tuple[Template, Template | None]:
    source, with_tools = _template_sources(settings, files)
    special = files.special_tokens
    return Template(source, special), Template(with_tools, special) if with_tools else None


def _template_sources(settings: Settings, files: ModelFiles) -> tuple[str, str | None]:
    if settings.chat_template is not None:
        try:
            return Path(settings.chat_template).read_text(encoding="utf-8"), None
        except OSError as error:
            raise ConfigError(f"--chat-template {settings.chat_template}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"--chat-template {settings.chat_template}: it is not UTF-8") from error
    if files.chat_template is None:
        raise ConfigError(f"{files.name} brings no chat template: give one with --chat-template FILE")
    return files.chat_template, files.tool_chat_template
