"""A whole gateway in the test's own process, around the channels under test, with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config import Secrets, Settings, load
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Record, Store
from pipeline.domain.clock import Clock, SystemClock
from pipeline.llm.scripted import ScriptedLlm
from voice.transcription.scripted_transcriber import ScriptedTranscriber

if TYPE_CHECKING:
    from gateway.app.bootstrap import Extras
    from gateway.app.lifecycle import Gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """A running gateway and what a test looks at."""

    gateway: Gateway
    llm: ScriptedLlm
    store: Store

    async def records(self, thread: str) -> tuple[Record, ...]:
        """The log of the thread with the key `thread`, oldest first."""
        return await self.store.read_log(thread)


@asynccontextmanager
async def running_gateway(
    folder: Path,
    *overrides: str,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    llm: ScriptedLlm | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    http: bool = False,
) -> AsyncIterator[RunningGateway]:
    """Run a gateway whose data are in `folder`, as `parlour serve` would with the file `config` and the
    `overrides` (`section.key=value`). A channel of an installed plug-in is configured there.

    The page, the limit of messages a minute and titles are off unless an override turns them on. `llm`
    answers (default: the person's words again); `http` serves /healthz, /metrics and the page. Raises
    ConfigurationProblems for a mistake in the configuration.
    """
    quiet = ("channels.web.enabled=false", "limits.messages_per_minute=0", "agent.titles=false")
    settings = load(config, environ or {}, [*quiet, f'data.dir="{folder}"', *overrides])
    llm = llm or ScriptedLlm.echo()
    store = store or MemoryStore()
    from gateway.app.bootstrap import Extras

    extras = Extras(
        clock=clock or SystemClock(),
        llm=llm,
        transcriber=ScriptedTranscriber(),
        store=store,
        http=http,
    )
    async with started(settings, Secrets(settings.secret_refs().values()), extras) as gateway:
        yield RunningGateway(gateway=gateway, llm=llm, store=store)


@asynccontextmanager
async def started(
    settings: Settings, secrets: Secrets, extras: Extras, *, drain_s: float = 5.0
) -> AsyncIterator[Gateway]:
    """A started gateway. At the end it is stopped, with `drain_s` seconds for running turns."""
    # A second of imports, which the test of a tool does not need.
    from gateway.app.bootstrap import build

    gateway = build(settings, secrets, extras)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(drain_s)
