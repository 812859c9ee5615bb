"""One episode: what `run_agent` finds on `self` while it runs, and the name of its session, which carries more."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from stenograph.integrations.openrlhf.place import Place

if TYPE_CHECKING:
    import openai


class SessionId(str):
    """The episode's session, for agents that are not Python, or have a client of their own."""

    api_key: str
    _place: Place

    @classmethod
    def of(cls, id: str, api_key: str, place: Place) -> SessionId:
        made = cls(id)
        made.api_key, made._place = api_key, place
        return made

    @property
    def base_url(self) -> str:
        """For the OpenAI SDK, over HTTP: opens the port that nobody else needs."""
        return f"{self.anthropic_base_url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        return f"{self._place.url}/s/{self}"


class Episode(NamedTuple):
    client: openai.AsyncOpenAI
    """Of this session, in this process: no call needs to name it."""
    model_name: str
    sampling_params: Any
    """A copy of the trainer's, so that no agent changes its siblings'."""
    max_length: int
    hf_tokenizer: Any


EPISODE: ContextVar[Episode] = ContextVar("episode")


class OfEpisode:
    """An attribute of the executor that is the running episode's own: one executor plays many at once. A subclass may
    still set it, as it could upstream."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, executor: object, owner: type | None = None) -> Any:
        episode = EPISODE.get(None)
        if episode is None:
            raise AttributeError(f"{self._name} is an episode's own: it is there while run_agent runs")
        return getattr(episode, self._name)
