"""`parlour chat`: the same gateway with the terminal as its channel, until the input ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from adapters.channel import Timeline
from adapters.console.adapter import ConsoleAdapter, ConsoleSettings
from adapters.console.stdin import read_lines
from gateway.bootstrap import Extras, build
from gateway.config import Secrets, Settings, crash_at, environment, load
from gateway.data_dir import DataDirBusy
from gateway.serve import open_logs
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError

# Before the user's own overrides, which win: the terminal is the channel, and its screen is for the
# conversation rather than for the log.
_CHAT_DEFAULTS = ("channels.web.enabled=false", "channels.console.enabled=true", "log.level=error")
_DRAIN_S = 1.0


def chat(config: Path | None, overrides: Sequence[str], voice: Path | None) -> int:
    """Talk until end of input; exit code 1 when anything was refused or ended in an error."""
    environ = environment()
    settings = load(config, environ, [*_CHAT_DEFAULTS, *overrides])
    secrets = open_logs(settings)
    return asyncio.run(_chat(settings, secrets, crash_at(environ), voice))


async def _chat(settings: Settings, secrets: Secrets, crash: str | None, voice: Path | None) -> int:
    interactive = sys.stdin.isatty()
    console: ConsoleAdapter | None = None

    def make(timeline: Timeline) -> ConsoleAdapter:
        nonlocal console
        console = ConsoleAdapter(
            ConsoleSettings(bot_name=settings.bot.name, interactive=interactive),
            timeline,
            SystemClock(),
            lines=read_lines(sys.stdin.fileno()),
            write=_write,
            voice_files=(voice,) if voice is not None else (),
        )
        return console

    try:
        extras = Extras(channels=(make,), crash_at=crash, http=settings.channels.web.enabled)
        gateway = build(settings, secrets, extras)
    except DataDirBusy as busy:
        raise ConfigurationError(
            f"{busy}. To chat beside a running gateway, open its page, or give the terminal a folder of "
            "its own: parlour chat --set data.dir=data-chat"
        ) from busy
    if interactive:
        _write(f"{settings.bot.name} · /help shows the commands, Ctrl-D ends.\n")
    interrupted = _on_interrupt()
    await gateway.start()
    ended = asyncio.ensure_future(gateway.channels_ended())  # noqa: TID251 - awaited four lines below
    try:
        await asyncio.wait((ended, interrupted), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()
        with suppress(asyncio.CancelledError):
            await ended
        await gateway.stop(_DRAIN_S)
    return 1 if console is not None and console.failed else 0


def _on_interrupt() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    interrupted: asyncio.Future[None] = loop.create_future()

    def received() -> None:
        if not interrupted.done():
            interrupted.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, received)
    return interrupted


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
