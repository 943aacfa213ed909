"""`parlour chat`: run a gateway with the terminal as its channel, until the input ends. If a gateway runs
with the same data folder, attach to that one as a client."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from adapters.channel import Timeline
from adapters.console.adapter import THREAD, ConsoleAdapter, ConsoleOptions
from adapters.console.stdin import read_lines
from gateway.app.bootstrap import Extras, build
from gateway.cli.attached_chat import Attachment
from gateway.cli.serve import open_logs
from gateway.cli.sign_in_link import access_token
from gateway.config import Secrets, Settings, crash_at, environment, load
from gateway.files.folder_store import stored_at
from gateway.runtime.crash_labels import LABELS
from gateway.runtime.data_dir import FILES_DIR, DataDirBusy
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass

# Applied before the user's own overrides, which win: the terminal is the channel, and its screen shows the
# conversation, not the log.
_CHAT_DEFAULTS = ("channels.web.enabled=false", "channels.console.enabled=true", "log.level=error")
_DRAIN_S = 1.0
_HISTORY_LINES = 10
_HOW_TO_END = "/help shows the commands, /quit or Ctrl-D ends."
_OWN_FOLDER = "Or give the terminal a separate folder: parlour chat --set data.dir=data-chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """The files that the command line names."""

    voice: tuple[Path, ...] = ()
    """Recordings, each sent as a voice note before the first line."""
    files: tuple[Path, ...] = ()
    """Sent with the first line."""


def chat(
    config: Path | None, overrides: Sequence[str], sent: NamedFiles | None = None, *, only: str | None = None
) -> int:
    """Talk until end of input; exit code 1 when anything was refused or ended in an error. With `only`, that
    message is the whole input."""
    environ = environment()
    settings = load(config, environ, [*_CHAT_DEFAULTS, *overrides])
    secrets = open_logs(settings)
    return asyncio.run(_chat(settings, secrets, crash_at(environ, labels=LABELS), sent or NamedFiles(), only))


async def _chat(
    settings: Settings, secrets: Secrets, crash: str | None, sent: NamedFiles, only: str | None
) -> int:
    interactive = only is None and sys.stdin.isatty()
    console: ConsoleAdapter | None = None

    def make(timeline: Timeline) -> ConsoleAdapter:
        nonlocal console
        named = ConsoleOptions(bot_name=settings.bot.name, where=partial(_stored_at, settings))
        console = _console(timeline, named, sent, only)
        return console

    try:
        extras = Extras(channels=(make,), crash_at=crash, http=settings.channels.web.enabled)
        gateway = build(settings, secrets, extras)
    except DataDirBusy as busy:
        if not busy.page:
            raise ConfigurationError(f"{busy}. {_why_not_attached(busy)} {_OWN_FOLDER}") from busy
        secrets.add(access_token(settings))
        return await _chat_beside(busy.page, settings, sent)
    if interactive:
        _write(f"{settings.bot.name} · {_HOW_TO_END}\n")
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


async def _chat_beside(page: str, settings: Settings, sent: NamedFiles) -> int:
    """Talk to the running gateway over its web socket; returns the exit code of `chat`."""
    interactive = sys.stdin.isatty()
    interrupted = _on_interrupt()
    tasks = Supervisor()
    async with Attachment(page, access_token(settings)) as attached:
        settled = ConsoleOptions(
            bot_name=attached.bot_name, text_chars=attached.text_chars, where=attached.link_to
        )
        console = _console(attached, settled, sent)
        if interactive:
            _write(f"{attached.bot_name}, which runs at {page} · {_HOW_TO_END}\n")
        try:
            talking = tasks.spawn(console.run(attached.accept), name="terminal")
            showing = tasks.spawn(attached.show(console), name="connection")
            await asyncio.wait((talking, showing, interrupted), return_when=asyncio.FIRST_COMPLETED)
            if showing.done() and not talking.done():
                console.fail("the gateway closed the connection; what was said is kept: start chat again")
        finally:
            await tasks.close()
        return 1 if console.failed else 0


def _console(
    timeline: Timeline, settings: ConsoleOptions, sent: NamedFiles, only: str | None = None
) -> ConsoleAdapter:
    """The console channel on this process's input and output, with an editor if both are a terminal."""
    clock = SystemClock()
    interactive = only is None and sys.stdin.isatty()
    settings = replace(settings, interactive=interactive, history_lines=_HISTORY_LINES if interactive else 0)
    make = partial(ConsoleAdapter, write=_write, voice_files=sent.voice, files=sent.files)
    if interactive and sys.stdout.isatty() and environment().get("TERM", "dumb") != "dumb":
        from adapters.console.live_screen import open_live_screen  # noqa: PLC0415 - a pipe does not need it

        screen, lines = open_live_screen(clock, bot_name=settings.bot_name, prompt=settings.prompt)
        return make(settings, timeline, clock, lines=lines, screen=screen)
    typed = read_lines(sys.stdin.fileno()) if only is None else _one_line(only)
    return make(settings, timeline, clock, lines=typed)


def _stored_at(settings: Settings, file: StoredFile) -> str:
    """The path of a file of the terminal's conversation."""
    return str(stored_at(settings.data.dir / FILES_DIR, THREAD, file.id).resolve())


async def _one_line(message: str) -> AsyncGenerator[str, None]:
    yield message


def _why_not_attached(busy: DataDirBusy) -> str:
    if busy.page is None:
        return "It is starting or ending: try again in a moment."
    return "Its page is switched off, so the terminal cannot join it: set channels.web.enabled=true there."


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
