"""What a message passes through: four traces of a whole gateway in this process, counted and not timed.

    python -m tools.trace_turn [--frames FILE] [--by-module]

- text turn: the second message of a chat on Telegram, typed; the model answers in four tokens
- page turn: the same message on the page, which shows the events itself
- voice note: the first message of a chat on Telegram, to a gateway that has not answered any yet
- live chunk: 32 ms of silence from the page's open microphone, from the socket to the detector's verdict

Telegram is the fake platform of the tests behind the real SDK; the store is SQLite, the model and the
transcriber are scripted, the voice detector is the real one. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.report import table
from tools.entered import Function, Profiler, Trace, lines

PACKAGES = ("gateway", "adapters", "pipeline", "voice")
"""The product: what is counted."""
MODULES = {
    "worker": "gateway.turns.worker",
    "store": "gateway.storage.sqlite",
    "model": "pipeline.llm.scripted",
    "transcriber": "voice.transcription.scripted_transcriber",
    "events": "pipeline.domain.events",
    "gateway": "tests.support.harness",
    "telegram": "tests.support.platforms.telegram",
    "ports": "tests.support.gateway_process",
    "web client": "tests.support.web_client",
}
"""Every module that is named here. Anyone who moves one puts its new place into this table."""
OWNER = "Worker._run"
"""The function of MODULES["worker"] below which all turns of a thread run."""
STREAM = "ScriptedLlm.stream"
"""The function of MODULES["model"] that is asked for an answer."""
SENDERS = frozenset(("send", "send_event"))
"""What functions are called that pass a live event on."""
TOKEN = "LlmToken"  # noqa: S105 - the class of MODULES["events"] that carries words of an answer
_TOKENS = ("One ", "two ", "three ", "four.")
_NOTE = b"OggS" + bytes(400)
_CHUNK = bytes(1024)
"""32 ms of silence: 512 samples of 16 bits."""
_CHUNKS = 3
_QUIET_S = 0.3
"""Nothing of ours is entered for so long: what was begun is over."""
_AWHILE_S = 0.6
"""As much when the store's threads have looked after their file, too: they do it after half a second."""
_LATER_S = 1.1
"""As much between two messages of a person: what is kept for a second is looked up again, as it mostly is."""
_LOOK_S = 0.02
_PATIENCE_S = 30.0

Modules = dict[str, ModuleType]


class TraceUnavailable(Exception):
    """A trace cannot be made. The message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One trace and what was counted beside it. `path` and `wrappers` are empty where no model is asked."""

    name: str
    trace: Trace
    commits: int
    platform_calls: int
    path: tuple[Function, ...] = ()
    """From the thread's owner to the model."""
    wrappers: tuple[Function, ...] = ()
    """What a token of the answer passes on its way to the channel."""

    @property
    def figures(self) -> dict[str, int]:
        """The counts, by their names in the table."""
        counts = self.trace.by_module()
        return {
            "modules": len(counts),
            "functions": len(self.trace.functions),
            "frames": counts.total(),
            "resumptions": self.trace.resumptions,
            "depth_worker_to_model": len(self.path),
            "event_wrappers": len(self.wrappers),
            "store_calls": self.trace.calls_into(MODULES["store"]),
            "commits": self.commits,
            "platform_calls": self.platform_calls,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Trace, print, and write the file that was asked for; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.trace_turn", description="What a message passes.")
    parser.add_argument(
        "--frames", type=Path, metavar="FILE", help="write every call in order, one in a line"
    )
    parser.add_argument("--by-module", action="store_true", help="print the frames of each module as well")
    chosen = parser.parse_args(arguments)
    try:
        modules = load_modules({**{name: name for name in PACKAGES}, **MODULES})
        with _folders() as folders:
            traced = asyncio.run(_traces(modules, *folders))
    except TraceUnavailable as error:
        print(f"trace_turn: {error}", file=sys.stderr)
        return 2
    if chosen.frames is not None:
        chosen.frames.write_text("\n".join(_listing(traced)) + "\n", encoding="utf-8")
    print("\n".join(_report(traced, by_module=chosen.by_module)))
    return 0


def load_modules(names: Mapping[str, str]) -> Modules:
    """Import the modules of the table. Raises TraceUnavailable, which names the entry that is wrong."""
    found: Modules = {}
    for what, name in names.items():
        try:
            found[what] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise TraceUnavailable(
                f"{what!r} is said to be in {name}, and there is no module {error.name}; put its new place "
                "into the table at the top of tools/trace_turn.py"
            ) from error
    for what, function in (("worker", OWNER), ("model", STREAM), ("events", TOKEN)):
        owner: object = found[what]
        for part in function.split("."):
            owner = getattr(owner, part, None)
        if owner is None:
            raise TraceUnavailable(
                f"{names[what]} has no {function}; put its new name at the top of tools/trace_turn.py"
            )
    return found


@contextmanager
def _folders() -> Iterator[list[Path]]:
    """One folder for each gateway."""
    with ExitStack() as stack:
        yield [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(4)]


async def _traces(
    modules: Modules, text_folder: Path, page_folder: Path, voice_folder: Path, live_folder: Path
) -> list[Traced]:
    profiler = Profiler(PACKAGES, look_at=SENDERS)
    profiler.install()
    try:
        async with _on_telegram(modules, profiler, text_folder) as chat:
            await chat.answered(chat.say("hello"))
            text = await chat.traced("text turn", chat.say("and again"), rest_s=_LATER_S)
        page = await _page_turn(modules, profiler, page_folder)
        async with _on_telegram(modules, profiler, voice_folder) as chat:
            voice = await chat.traced("voice note", chat.speak())
        return [text, page, voice, await _live_chunk(modules, profiler, live_folder)]
    finally:
        profiler.remove()


@dataclass(slots=True, kw_only=True)
class _Chat:
    """A person's chat with a gateway on the fake Telegram."""

    profiler: Profiler
    platform: Any
    store: Any
    place: Any
    person: Any
    answers: int = 0

    def say(self, text: str) -> Awaitable[object]:
        written: Awaitable[object] = self.platform.say(self.place, self.person, text)
        return written

    def speak(self) -> Awaitable[object]:
        sent: Awaitable[object] = self.platform.speak(self.place, self.person, _NOTE, mime="audio/ogg")
        return sent

    async def answered(self, sending: Awaitable[object]) -> None:
        """Send, and wait until the answer is shown."""
        await sending
        self.answers += 1
        wanted = self.answers
        await self.platform.until(lambda: len(self._shown()) == wanted, timeout_s=_PATIENCE_S)

    def _shown(self) -> list[str]:
        end = "".join(_TOKENS)
        return [text for text in self.platform.bot_texts(self.place) if text.endswith(end)]

    async def traced(self, name: str, sending: Awaitable[object], *, rest_s: float = _QUIET_S) -> Traced:
        """Rest, send, and trace until the answer is shown and all that belongs to it is done."""
        await _rest(self.profiler, rest_s)
        commits, calls = self.store.commits, len(self.platform.calls)
        trace = self.profiler.record()
        await self.answered(sending)
        await _quiet(trace)
        self.profiler.stop()
        asked = [call for call in self.platform.calls[calls:] if call.method != "getUpdates"]
        return _turn(name, trace, commits=self.store.commits - commits, platform_calls=len(asked))


def _turn(name: str, trace: Trace, *, commits: int, platform_calls: int) -> Traced:
    try:
        path = trace.stack_between((MODULES["worker"], OWNER), (MODULES["model"], STREAM))
    except LookupError as error:
        raise TraceUnavailable(f"{name}: {error}; see the top of tools/trace_turn.py") from error
    wrappers = trace.deepest(SENDERS, given=TOKEN)
    return Traced(
        name=name, trace=trace, commits=commits, platform_calls=platform_calls, path=path, wrappers=wrappers
    )


@asynccontextmanager
async def _on_telegram(modules: Modules, profiler: Profiler, folder: Path) -> AsyncIterator[_Chat]:
    async with (
        modules["telegram"].FakeTelegram() as platform,
        _running(modules, folder, *platform.overrides(folder)) as running,
    ):
        person = platform.person("ann")
        place = platform.private_chat(person)
        yield _Chat(profiler=profiler, platform=platform, store=running.store, place=place, person=person)


async def _page_turn(modules: Modules, profiler: Profiler, folder: Path) -> Traced:
    """The second turn of a chat on the page."""
    async with _on_page(modules, folder) as (running, chat):
        await _asked(chat, "first")
        await _rest(profiler, _LATER_S)
        commits = running.store.commits
        trace = profiler.record()
        await _asked(chat, "second")
        await _quiet(trace)
        profiler.stop()
        return _turn("page turn", trace, commits=running.store.commits - commits, platform_calls=0)


async def _asked(chat: Any, client_id: str) -> None:
    await chat.send_text(client_id, "and again")
    await chat.terminal(await chat.accepted(client_id))


@asynccontextmanager
async def _on_page(modules: Modules, folder: Path) -> AsyncIterator[tuple[Any, Any]]:
    port = modules["ports"].free_port()
    overrides = ("channels.web.enabled=true", f"server.port={port}")
    async with _running(modules, folder, *overrides) as running, modules["web client"].WebChat() as chat:
        token = (folder / "data" / "web-token").read_text(encoding="ascii").strip()
        await chat.connect(f"http://127.0.0.1:{port}", token)
        yield running, chat


async def _live_chunk(modules: Modules, profiler: Profiler, folder: Path) -> Traced:
    """Of several traces the one with the middle count: what looks after microphones and store is in some."""
    async with _on_page(modules, folder) as (running, chat):
        await chat.talk("live")
        await chat.send_sound(_CHUNK * _CHUNKS)
        await _rest(profiler, _AWHILE_S)
        found = [await _chunk(profiler, running.store, chat) for _ in range(_CHUNKS)]
    return sorted(found, key=lambda one: len(one.trace.calls))[_CHUNKS // 2]


async def _chunk(profiler: Profiler, store: Any, chat: Any) -> Traced:
    commits = store.commits
    trace = profiler.record()
    await chat.send_sound(_CHUNK)
    await _quiet(trace)
    profiler.stop()
    return Traced(name="live chunk", trace=trace, commits=store.commits - commits, platform_calls=0)


@asynccontextmanager
async def _running(modules: Modules, folder: Path, *overrides: str) -> AsyncIterator[Any]:
    model, transcriber = modules["model"], modules["transcriber"]
    answer = model.ScriptedAnswer(chunks=_TOKENS)
    async with modules["gateway"].open_gateway(
        folder / "data",
        *overrides,
        llm=model.ScriptedLlm([answer] * 2),
        transcriber=transcriber.ScriptedTranscriber.always("what time is it"),
    ) as running:
        async with asyncio.timeout(_PATIENCE_S):
            while not all(one.up for one in running.gateway.channel_statuses()):  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(_LOOK_S)
        yield running


async def _rest(profiler: Profiler, seconds: float) -> None:
    """Wait until what happened before a trace is over."""
    await _quiet(profiler.record(), seconds)
    profiler.stop()


async def _quiet(trace: Trace, seconds: float = _QUIET_S) -> None:
    """Wait until nothing of ours is entered for so long. Raises TraceUnavailable when that does not come."""
    loop = asyncio.get_running_loop()
    began = changed = loop.time()
    entered = -1
    while loop.time() - changed < seconds:
        if loop.time() - began > _PATIENCE_S:
            raise TraceUnavailable(f"the gateway does not rest: {trace.calls[-1].function} is entered always")
        now = len(trace.calls) + trace.resumptions
        if now != entered:
            entered, changed = now, loop.time()
        await asyncio.sleep(_LOOK_S)


def _report(traced: Sequence[Traced], *, by_module: bool) -> list[str]:
    """The table, what is between worker and model, and last one line of JSON."""
    figures = {one.name: one.figures for one in traced}
    names = list(traced[0].figures)
    rows = [(name, *(str(counts[name]) for counts in figures.values())) for name in names]
    text = ["what a message passes through", "", *table(("", *figures), rows), ""]
    for one in traced:
        for title, stack in (("from worker to model", one.path), ("what a token passes", one.wrappers)):
            if stack:
                text += [f"{one.name}, {title}:", *(f"  {function}" for function in stack), ""]
        if by_module:
            counts = sorted(one.trace.by_module().items(), key=lambda item: (-item[1], item[0]))
            cells = [(module, str(count)) for module, count in counts]
            text += [*table((one.name, "frames"), cells), ""]
    return [*text, json.dumps({"trace": {name.replace(" ", "_"): figures[name] for name in figures}})]


def _listing(traced: Sequence[Traced]) -> Iterator[str]:
    for one in traced:
        yield f"# {one.name}"
        yield from lines(one.trace)


if __name__ == "__main__":
    sys.exit(main())
