"""Build the memory: the book, and what is configured beside it."""

from __future__ import annotations

from gateway.config import Settings
from gateway.config.memory import MemorySettings
from gateway.memory.embedding_job import EmbeddingJob
from gateway.memory.retention import MemoryRetention
from gateway.runtime.tasks import Supervisor
from gateway.scheduling.elected_work import Once
from gateway.scheduling.jobs import JobRunner
from pipeline.domain.clock import Clock
from pipeline.memory.embedding import Embedder
from pipeline.memory.local_embedder import LocalEmbedder, is_installed
from pipeline.memory.ports import MemoryBook
from pipeline.memory.values import MemoryMode

_FORCED = "litellm/"


class Memory:
    """The memory of one gateway. Pass `book`, `mode` and `embedder` to whatever loads and writes."""

    def __init__(
        self, settings: MemorySettings, book: MemoryBook, clock: Clock, embedder: Embedder | None
    ) -> None:
        self.book = book
        self.mode: MemoryMode = settings.mode
        self.embedder = embedder
        self._clock = clock
        self._retention = MemoryRetention(book, clock, keep_days=settings.keep_days)
        self._embedding: EmbeddingJob | None = None

    def use(self, jobs: JobRunner) -> None:
        """Embed facts by jobs of that runner, if an embedding model is configured."""
        if self.embedder is not None:
            self._embedding = EmbeddingJob(self.book, self.embedder, jobs, self._clock)
            jobs.handle(self._embedding.kind)

    def start(self, tasks: Supervisor, once: Once) -> None:
        """Delete what is old, `once` for all processes that share the store, and embed what is new, as tasks
        of `tasks`."""
        once(self._retention.remove_old, name="old memories")
        if self._embedding is not None:
            tasks.spawn(self._embedding.run(), name="memory vectors")

    async def close(self) -> None:
        """End the embedding model."""
        if self.embedder is not None:
            await self.embedder.close()


def build_memory(
    settings: Settings, book: MemoryBook, clock: Clock, embedder: Embedder | None = None
) -> Memory:
    """The memory that `settings` describe. `embedder` replaces the configured one. Starts nothing."""
    own = settings.memory
    if own.mode == "incognito":
        return Memory(own, book, clock, None)
    return Memory(own, book, clock, embedder or _embedder(settings, clock))


async def memory_state(settings: Settings, clock: Clock) -> tuple[bool, str]:
    """Whether all is well with the memory, and its state in words for the operator. Embeds one word."""
    own = settings.memory
    kept = f"kept for {own.keep_days} days" if own.keep_days else "kept until it is deleted"
    if own.mode == "incognito":
        return True, "incognito: nothing is remembered"
    embedder = _embedder(settings, clock)
    if embedder is None:
        more = "; found by words" + ("" if is_installed() else ", `parlour[memory]` adds vectors")
        return True, kept + more
    try:
        vector = await embedder.question("weather")
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        return False, f"{kept}; {error}"
    finally:
        await embedder.close()
    return True, f"{kept}; found by words, and by vectors of {embedder.model} with {len(vector)} numbers"


def _embedder(settings: Settings, clock: Clock) -> Embedder | None:
    own = settings.memory
    if own.embedding == "none":
        return None
    if own.embedding == "local":
        return LocalEmbedder(clock)
    from pipeline.llm.litellm_embedding import LitellmEmbedder  # noqa: PLC0415 - a large library behind it

    key = None if own.embedding_api_key is None else own.embedding_api_key.resolve()
    model = own.embedding.removeprefix(_FORCED)
    if model.startswith("openai_compatible/"):
        model = "openai/" + model.removeprefix("openai_compatible/")
    return LitellmEmbedder(model=model, api_base=own.embedding_api_base, api_key=key)
