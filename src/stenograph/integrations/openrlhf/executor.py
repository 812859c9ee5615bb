"""What OpenRLHF calls for each rollout: a session is opened, the agent plays, its record becomes the trainer's sample.

Nothing that an agent or an engine does gets out as an exception: upstream gathers a prompt's rollouts, and one that
raises ends them all, and the run. What cannot be set right while it runs (a tokenizer without a template) does raise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple

import msgspec

from stenograph.errors import Conflict, NotFound
from stenograph.furnish import IN_MEMORY
from stenograph.gateway import Session
from stenograph.integrations.openrlhf.episode import EPISODE, Episode, OfEpisode, SessionId
from stenograph.integrations.openrlhf.llm_engine import defaults_of
from stenograph.integrations.openrlhf.outcome import Failure, Outcome, failed, judged, said
from stenograph.integrations.openrlhf.place import Place, Places, Wanted
from stenograph.integrations.openrlhf.response import is_text, prompt_tokens, response

log = logging.getLogger("stenograph")
STATES: Mapping[Failure | None, str] = {None: "completed", Failure.TIMEOUT: "timeout"}
"""How a session ends; any other failure is `failed`."""


class Task(NamedTuple):
    prompt: Any
    label: Any
    sampling_params: Any
    """A copy of the trainer's own: a prompt's rollouts share one object."""
    max_length: int
    hf_tokenizer: Any


class Executor(ABC):
    client = OfEpisode()
    model_name = OfEpisode()
    sampling_params = OfEpisode()
    max_length = OfEpisode()
    hf_tokenizer = OfEpisode()

    gateway_settings: ClassVar[Mapping[str, Any]] = {}
    """Of `config.Settings`: `history`, `tool_parser`, … With a `store`, sessions are kept; without, each is forgotten
    once its sample is returned."""
    extra_log_defaults: ClassVar[Mapping[str, float]] = {}
    """The `extra_logs` that `run_agent` returns, with what a rollout logs that failed."""
    episode_seconds: ClassVar[float | None] = None
    """How long `run_agent` may take; None: as long as it does."""

    @abstractmethod
    async def run_agent(self, prompt: Any, label: Any, session_id: SessionId) -> Mapping[str, Any] | None:
        """Plays one rollout and returns `{"reward": …, "scores"?: …, "extra_logs"?: {…}}`."""

    async def execute(
        self,
        prompt: Any,
        label: Any,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        wanted = Wanted(llm_engine, hf_tokenizer, max_length, type(sampling_params))
        place = await self._places().at(wanted, self.gateway_settings)
        trainers = defaults_of(sampling_params)
        texts = {name: one for name, one in (("prompt", prompt), ("label", label)) if is_text(one)}
        session = place.gateway.session(sampling={"defaults": trainers}, metadata=texts)
        try:
            if images:
                outcome = Outcome(failure=Failure.IMAGES, detail="images have no place in a record of tokens")
            else:
                params = deepcopy(sampling_params)
                outcome = await self._played(place, session, Task(prompt, label, params, max_length, hf_tokenizer))
            outcome = msgspec.structs.replace(outcome, extra_logs={**self.extra_log_defaults, **outcome.extra_logs})
            await _ended(session, outcome)
            samples = session.samples()
            instead = [] if samples else prompt_tokens(prompt, hf_tokenizer, max_length)
            told = response(samples, outcome, trainers, instead)
        finally:
            await _left(place, session)
        asked_for_logprobs = getattr(sampling_params, "logprobs", None) is not None
        logprobs = told["rollout_log_probs"] if asked_for_logprobs else None
        return told | {"prompt": prompt, "label": label, "rollout_log_probs": logprobs}

    async def _played(self, place: Place, session: Session, task: Task) -> Outcome:
        try:
            async with place.client(session) as client:
                episode = Episode(client, place.model_name, task.sampling_params, task.max_length, task.hf_tokenizer)
                result = await self._run(episode, task, SessionId.of(session.id, session.api_key, place))
            outcome = said(result, self.extra_log_defaults)
            return judged(outcome, session.record(), task.prompt, task.hf_tokenizer)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # `sys.exit` in a program that was made an agent, a panic of Rust's
            if _cancelled_from_outside(error):
                raise
            log.debug("session %s", session.id, exc_info=True)
            return failed(error)

    async def _run(self, episode: Episode, task: Task, session_id: SessionId) -> object:
        token = EPISODE.set(episode)
        try:
            async with asyncio.timeout(self.episode_seconds):
                return await self.run_agent(task.prompt, task.label, session_id)
        finally:
            EPISODE.reset(token)

    def _places(self) -> Places:
        """Made when it is first wanted: a subclass need not call our constructor."""
        places: Places = vars(self).setdefault("_stenograph_places", Places())
        return places


def _cancelled_from_outside(error: BaseException) -> bool:
    """An agent may cancel tasks of its own, and wait for them."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def _ended(session: Session, outcome: Outcome) -> None:
    """An agent has the key of its session, and may have ended or deleted it: what was sampled is its sample still."""
    if outcome.failure is not None:
        log.warning("session %s is not trained, %s: %s", session.id, outcome.failure, outcome.detail)
    with contextlib.suppress(Conflict, NotFound):
        if outcome.failure is None:
            await session.reward(outcome.reward, scores={"scores": outcome.scores, **outcome.extra_logs})
        await session.finish(STATES.get(outcome.failure, "failed"), outcome.detail or None)


async def _left(place: Place, session: Session) -> None:
    """A training run opens sessions for weeks: those that no store keeps are let go."""
    if place.gateway.settings.store == IN_MEMORY:
        with contextlib.suppress(NotFound):
            await session.delete()
