"""`parlour doctor`: test this installation part by part; green or red, with a remedy for red."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from adapters.api.adapter import GUARANTEE
from adapters.api.run_ids import CHANNEL
from adapters.channel import Channel
from adapters.console.adapter import ConsoleAdapter, ConsoleOptions
from gateway.app.bus import bus_state
from gateway.app.crisis_vectors import vectors_state
from gateway.app.llm import ModelClients
from gateway.app.memory import memory_state
from gateway.app.platforms import built_channels
from gateway.app.reading import build_reader
from gateway.app.safety import crisis_gate_words
from gateway.app.search import search_state
from gateway.app.shell import shell_state
from gateway.app.tools import reference_reader
from gateway.app.voice import SCRIPTED, build_speaker, build_transcriber
from gateway.app.web import languages_state, make_page
from gateway.channels.timeline import StoreTimeline
from gateway.cli.channel_checks import channel_findings
from gateway.cli.classifier_check import classified_agent, classifier_finding
from gateway.cli.editor_check import editor_state, saved_graphs_state
from gateway.cli.evaluator_check import evaluator_finding
from gateway.cli.findings import Finding
from gateway.cli.model_check import model_finding
from gateway.cli.models import models_present
from gateway.cli.plugins import plugin_finding
from gateway.cli.serve import open_logs
from gateway.cli.shield_classifier_check import shield_classifier_finding
from gateway.cli.store_check import store_findings
from gateway.config import DEFAULT_AGENT, Settings, agent_settings, environment, load
from gateway.config.api_rules import workflow_agents
from gateway.runtime.http_server import Addresses
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ParlourError
from pipeline.domain.readings import FileUnreadable
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.tools.mcp_config import read_mcp_file
from pipeline.tools.skills import SkillFolder
from voice.errors import VoiceError
from voice.selftest import BUNDLED_TRANSCRIPT, bundled_clip
from voice.synthesis.piper_client import languages_of, voices_in
from voice.transcriber import Recording
from voice.wer import word_error_rate

_MAX_WER = 0.2
_NO_VOICE = (
    "not set up, and nothing else needs it; to have it, `pip install 'parlour[speech]'` and "
    "`parlour models get voice-en`"
)
_LATER = (
    "no voice yet: one is fetched (63 MB) when a person first asks for it, "
    "or now by `parlour models get voice-en`"
)
_WORDS_CHARS = 2_000
_GREEN, _RED, _PLAIN = "\033[32m", "\033[31m", "\033[0m"


def doctor(config: Path | None, overrides: Sequence[str]) -> int:
    """Print every finding; 0 when all are green, 1 otherwise. Raises ConfigurationProblems."""
    settings = load(config, environment(), [*overrides, "log.level=error"])
    redactor = Redactor(open_logs(settings).known_values)
    return asyncio.run(_examine(settings, SystemClock(), redactor))


async def _examine(settings: Settings, clock: Clock, redactor: Redactor) -> int:
    red = 0
    async for finding in findings(settings, clock):
        # A provider's answer may contain the API key that it received, or another key.
        _print(replace(finding, words=redactor.line(finding.words, _WORDS_CHARS)))
        red += not finding.good
    for channel, words in delivery_guarantees(settings):
        sys.stdout.write(f"  ·  delivery on {channel}: {words}\n")
    sys.stdout.write("All is well.\n" if not red else f"{red} of the checks failed; see above.\n")
    return 1 if red else 0


async def findings(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """Run all checks, cheap ones first, and yield their findings."""
    busy, stored = await store_findings(settings, clock)
    for finding in stored:
        yield finding
    for finding in (*_page(settings, busy=busy), *await _if_used(settings, clock)):
        yield finding
    missing = [words for words in models_present(settings.models_path) if words]
    if settings.llm.model == "local" or settings.voice.transcriber == "whisper":
        words = "; ".join(missing) if missing else f"complete in {settings.models_path}"
        yield Finding(name="model files", good=not missing, words=words)
    async for finding in channel_findings(settings, clock):
        yield finding
    yield _skills(settings, clock)
    if settings.tools.enabled and settings.tools.mcp_file is not None:
        yield _mcp_servers(settings.tools.mcp_file)
    good, words = await search_state(settings, clock, Redactor())
    yield Finding(name="web search", good=good, words=words)
    yield Finding(name="crisis gate", good=True, words=crisis_gate_words(settings))
    good, words = await memory_state(settings, clock)
    yield Finding(name="memory", good=good, words=words)
    good, words = shell_state(settings)
    yield Finding(name="commands", good=good, words=words)
    found = plugin_finding()
    if found is not None:
        yield found
    yield await _file_reader(settings, clock)
    yield await _voice(settings, clock)
    yield await _reading_aloud(settings, clock)
    async for finding in _models(settings, clock):
        yield finding


async def _if_used(settings: Settings, clock: Clock) -> list[Finding]:
    """About the server of the bus, the vectors of the crisis gate, the page's workflow editor and agents with
    saved workflows; nothing where there are none."""
    found = (
        ("bus", await bus_state(settings, clock)),
        ("crisis vectors", await vectors_state(settings, clock)),
        ("workflow editor", await editor_state(settings)),
        ("saved workflows", saved_graphs_state(settings)),
    )
    return [Finding(name=name, good=state[0], words=state[1]) for name, state in found if state is not None]


def delivery_guarantees(settings: Settings) -> list[tuple[str, str]]:
    """The delivery guarantee of each enabled channel: (name, text)."""
    clock = SystemClock()
    store = MemoryStore()
    timeline, folder = StoreTimeline(store, clock), settings.data.dir
    addresses = Addresses(settings.server.host, settings.server.port, ())
    page = make_page(settings, folder, store.blobs, addresses, lambda _: False, timeline, clock)
    adapters: list[Channel] = [one.adapter for one in built_channels(settings, timeline, clock)[0]]
    if page.adapter:
        adapters.insert(0, page.adapter)
    if settings.channels.console.enabled:
        adapters.append(ConsoleAdapter(ConsoleOptions(), timeline, clock, lines=None, write=lambda _: None))
    found = [(adapter.name, adapter.capabilities.guarantee) for adapter in adapters]
    return [*found, (CHANNEL, GUARANTEE)] if settings.api.enabled else found


def _page(settings: Settings, *, busy: bool) -> Iterator[Finding]:
    """Whether the page and the API can be served; nothing where both are switched off."""
    if not (settings.channels.web.enabled or settings.api.enabled):
        return
    yield _port(settings.server.host, settings.server.port, busy=busy)
    if settings.api.enabled:
        yield _api(settings)
    languages = languages_state(settings) if settings.channels.web.enabled else None
    if languages is not None:
        yield Finding(name="page languages", good=languages[0], words=languages[1])


def _api(settings: Settings) -> Finding:
    """Who may run what over the HTTP API. Loading has checked the names and the secrets."""
    known = ", ".join(workflow_agents(settings)) or "none"
    tokens = ", ".join(f"{name} ({', '.join(one.scopes)})" for name, one in settings.api.tokens.items())
    webhooks = f"; webhooks: {', '.join(settings.api.webhooks)}" if settings.api.webhooks else ""
    return Finding(name="API", good=True, words=f"workflows: {known}; tokens: {tokens}{webhooks}")


def _port(host: str, port: int, *, busy: bool) -> Finding:
    if port == 0:
        return Finding(name="port", good=True, words="any free one")
    if busy:
        return Finding(name="port", good=True, words=f"{port} belongs to the running gateway")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            words = f"{host}:{port} cannot be used ({error.strerror}); stop its user or set server.port"
            return Finding(name="port", good=False, words=words)
    return Finding(name="port", good=True, words=f"{host}:{port} is free")


def _skills(settings: Settings, clock: Clock) -> Finding:
    """Whether every skill in the workspace can be used. Skills are optional."""
    folder = SkillFolder(settings.workspace_path / "skills", clock)
    usable, problems = folder.summaries(), folder.problems()
    words = ", ".join(skill.name for skill in usable) or "none"
    return Finding(name="skills", good=not problems, words="; ".join((words, *problems)))


def _mcp_servers(path: Path) -> Finding:
    """Whether the file and its references can be read. Starts no server."""
    name, resolve = "MCP servers", reference_reader(path)
    try:
        servers = read_mcp_file(path)
        for server in servers:
            server.environment({}, resolve)
            server.sent_headers(resolve)
    except ParlourError as error:
        return Finding(name=name, good=False, words=str(error))
    words = ", ".join(server.name for server in servers) or f"none in {path}"
    return Finding(name=name, good=True, words=words)


async def _file_reader(settings: Settings, clock: Clock) -> Finding:
    """Whether the process that reads pictures and documents starts; it tries itself then."""
    name, reader = "file reader", build_reader(settings, clock)
    started = clock.monotonic()
    try:
        await reader.warm_up()
    except FileUnreadable as error:
        words = f"pictures and documents cannot be read: {error.detail}"
        return Finding(name=name, good=False, words=words)
    finally:
        await reader.close()
    words = f"reads pictures and documents in a sandbox; ready after {clock.monotonic() - started:.1f} s"
    return Finding(name=name, good=True, words=words)


async def _voice(settings: Settings, clock: Clock) -> Finding:
    transcriber = build_transcriber(settings)
    if transcriber is None:
        return Finding(name="voice", good=True, words="switched off (voice.enabled)")
    if settings.voice.transcriber.startswith(SCRIPTED):
        return Finding(name="voice", good=True, words="the scripted fake is configured; nothing to test")
    started = clock.monotonic()
    try:
        transcript = await transcriber.transcribe(Recording(data=bundled_clip()))
    except VoiceError as error:
        return Finding(name="voice", good=False, words=error.for_operator)
    finally:
        await transcriber.close()
    transcript_text = " ".join(chunk.text.strip() for chunk in transcript.chunks)
    errors = word_error_rate(BUNDLED_TRANSCRIPT, transcript_text)
    words = f'the bundled clip was heard as "{transcript_text}" in {clock.monotonic() - started:.1f} s'
    return Finding(name="voice", good=errors <= _MAX_WER, words=f"{words} (word error rate {errors:.2f})")


async def _reading_aloud(settings: Settings, clock: Clock) -> Finding:
    """Whether the first voice speaks and the named ones exist. Voices are optional, so none is no fault."""
    name = "reading aloud"
    missing = _missing_voices(settings)
    if missing:
        return Finding(name=name, good=False, words=missing)
    speaker = build_speaker(settings)
    if speaker is None:
        words = "switched off (voice.replies.enabled)" if not settings.voice.replies.enabled else _NO_VOICE
        return Finding(name=name, good=True, words=words)
    voices = voices_in(settings.voices_path)
    if not voices:
        await speaker.close()
        return Finding(name=name, good=True, words=_LATER)
    started = clock.monotonic()
    try:
        # Loading the voice has a separate limit of one minute, longer than the one for the few words.
        await speaker.warm_up()
        await speaker.speak("1, 2, 3.", language=next(iter(voices), "en"))
    except VoiceError as error:
        return Finding(name=name, good=False, words=str(error))
    finally:
        await speaker.close()
    spoken = ", ".join(f"{voice} ({language})" for language, voice in voices.items())
    return Finding(name=name, good=True, words=f"{spoken}; spoke after {clock.monotonic() - started:.1f} s")


def _missing_voices(settings: Settings) -> str:
    """The voices that agents name and that are not installed, in words; empty if there are none."""
    if not settings.voice.replies.enabled:
        return ""
    installed = languages_of(settings.voices_path)
    named = {"agent.voice": settings.agent.voice}
    named |= {f"agents.{name}.voice": profile.voice for name, profile in settings.agents.items()}
    missing = [f"{path} names {voice}" for path, voice in named.items() if voice and voice not in installed]
    if not missing:
        return ""
    known = ", ".join(installed) or "no voice"
    return f"{'; '.join(missing)}, but {settings.voices_path} has {known}: add the voice's two files"


async def _models(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """The model of each agent that differs from those before it, the shield's evaluator, and the crisis
    classifier."""
    tried: list[LlmClient] = []
    clients = ModelClients(settings, clock)
    for name in (DEFAULT_AGENT, *settings.agents):
        own = agent_settings(settings, name)
        of = "" if name == DEFAULT_AGENT else f" of {name}"
        for kind, model, client in (
            ("model", own.llm.model, clients.main(own)),
            ("cheaper model", str(own.budget.cheaper_model), clients.cheaper()),
        ):
            if client is not None and client not in tried:
                tried.append(client)
                yield await model_finding(f"{kind}{of}", model, client, own, clock)
    if settings.shield.classifier is not None:
        yield await shield_classifier_finding(settings.shield, clock)
    if settings.shield.evaluator is not None:
        yield await evaluator_finding(settings.shield.evaluator, settings, clock)
    if (classified := classified_agent(settings)) is not None:
        yield await classifier_finding(classified, clock)


def _print(finding: Finding) -> None:
    mark = "ok " if finding.good else "BAD"
    if sys.stdout.isatty():
        mark = f"{_GREEN if finding.good else _RED}{mark}{_PLAIN}"
    sys.stdout.write(f"{mark}  {finding.name}: {finding.words}\n")
    sys.stdout.flush()
