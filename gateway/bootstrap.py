"""The composition root: settings in, a gateway out. The only place that knows every implementation."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from adapters.channel import Channel, PostingChannel, Timeline
from adapters.console.adapter import ConsoleAdapter, ConsoleSettings
from adapters.web.adapter import WebAdapter
from adapters.web.security import AttemptLimit, token_matches
from adapters.web.settings import WebSettings
from gateway.access import AccessPolicy, AccessRule
from gateway.app import Gateway, Parts
from gateway.broadcaster import EventBroadcaster
from gateway.config import SecretRef, Secrets, SecretUnavailable, Settings, environment
from gateway.coordinator import ProcessingCoordinator
from gateway.data_dir import DataDir, own_web_token
from gateway.delivery import Delivery
from gateway.failpoints import Failpoints
from gateway.hearing import ChannelEars
from gateway.inbox import Inbox
from gateway.lanes import Lanes
from gateway.live import LiveReplies
from gateway.posting import Posting
from gateway.posting_channels import BuiltChannel, posting_channels
from gateway.server import Addresses, Server
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from gateway.tasks import Supervisor
from gateway.telemetry import Telemetry
from gateway.timeline import StoreTimeline
from gateway.token_lease import TokenLease, lock_folder
from gateway.turns import TurnHooks, TurnRunner
from gateway.worker import Worker
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ParlourError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage
from pipeline.domain.timeline import TimelineEntry
from pipeline.graph.spec import GraphSpec
from pipeline.llm.client import LlmClient
from pipeline.llm.litellm_client import LitellmClient
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from pipeline.service import Pipeline
from pipeline.topologies import conversation_graph
from voice.intake import VoiceIntake
from voice.scripted import ScriptedTranscriber
from voice.settings import VoiceSettings
from voice.transcriber import Transcriber
from voice.worker import WhisperTranscriber

_log = logging.getLogger(__name__)

_SCRIPTED = "scripted:"
ChannelFactory = Callable[[Timeline], Channel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a host adds to the configured gateway: `parlour chat` a channel, tests and benches a model."""

    channels: tuple[ChannelFactory, ...] = ()
    rules: Mapping[tuple[str, str], AccessRule] = field(default_factory=dict)
    """Who may speak on those of `channels` that post, by (channel, account)."""
    clock: Clock = field(default_factory=SystemClock)
    llm: LlmClient | None = None
    transcriber: Transcriber | None = None
    store: Store | None = None
    graph: GraphSpec[RunContext] | None = None
    """What a message walks through instead of the conversation."""
    crash_at: str | None = None
    http: bool = True
    """Whether to serve health, metrics and the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """What most parts are made with."""

    settings: Settings
    clock: Clock
    telemetry: Telemetry
    failpoints: Failpoints
    store: Store
    web: WebAdapter | None
    channels: Mapping[tuple[str, str], Channel]
    live: LiveReplies
    delivery: Delivery


def build(settings: Settings, secrets: Secrets, extras: Extras | None = None) -> Gateway:
    """Put a gateway together. Claims the data folder; starts nothing else.

    Raises ConfigurationError in words; the folder is free again then.
    """
    data = DataDir.claim(settings.data.dir)
    try:
        return _build(settings, secrets, extras or Extras(), data)
    except BaseException:
        data.release()
        raise


def _build(settings: Settings, secrets: Secrets, extras: Extras, data: DataDir) -> Gateway:
    clock = extras.clock
    telemetry = Telemetry(clock)
    failpoints = Failpoints(extras.crash_at)
    background, threads, deliveries = Supervisor(), Supervisor(), Supervisor()
    store = extras.store or _store(settings, data)
    timeline = StoreTimeline(store, clock)
    addresses = Addresses(settings.server.host, settings.server.port, settings.server.public_origins)
    token_check = _token_check(settings, secrets)
    web = None
    if settings.channels.web.enabled:
        web_settings = _web_settings(settings, data.media_path, addresses, token_check)
        web = WebAdapter(web_settings, timeline, clock)
    posting = posting_channels(settings, timeline, clock)
    adapters: list[Channel] = [*([web] if web else []), *(one.adapter for one in posting)]
    adapters += [make(timeline) for make in extras.channels]
    channels = {(adapter.name, adapter.account): adapter for adapter in adapters}
    lanes = Lanes(clock, deliveries)
    live = LiveReplies(store=store, lanes=lanes, clock=clock, supervisor=background)
    base = _Base(
        settings=settings,
        clock=clock,
        telemetry=telemetry,
        failpoints=failpoints,
        store=store,
        web=web,
        channels=channels,
        live=live,
        delivery=Delivery(
            store=store,
            channels=channels,
            lanes=lanes,
            posting=Posting(store=store, live=live, clock=clock, failpoints=failpoints),
            timeline=timeline,
            clock=clock,
            telemetry=telemetry,
            failpoints=failpoints,
        ),
    )
    llm = extras.llm or build_llm(settings, clock)
    transcriber = extras.transcriber or build_transcriber(settings)
    coordinator = ProcessingCoordinator(store, clock, lease_s=settings.turn.lease_s)
    turns = _turns(base, _pipeline(base, llm, transcriber, extras.graph))
    worker = Worker(store=store, coordinator=coordinator, turns=turns, clock=clock, supervisor=threads)
    gateway = Gateway(
        Parts(
            data=data,
            store=store,
            channels=base.channels,
            inbox=_inbox(base, worker, {**_rules(posting), **extras.rules}),
            worker=worker,
            coordinator=coordinator,
            delivery=base.delivery,
            addresses=addresses,
            llm=llm,
            transcriber=transcriber,
            clock=clock,
            sweep_media=_sweep_media(base),
            background=background,
            turns=threads,
            deliveries=deliveries,
            leases=_leases(posting, coordinator),
        )
    )
    telemetry.watch_channels(gateway.channel_statuses)
    if extras.http:
        routes = [route for one in posting for route in one.routes]
        gateway.server = Server(
            addresses=addresses,
            routes=[*(web.routes() if web is not None else ()), *routes],
            channels=gateway.channel_lines,
            ready=lambda: gateway.ready,
            metrics=telemetry.exposition,
            token_check=token_check,
            attempts=AttemptLimit(clock),
        )
    return gateway


def _pipeline(
    base: _Base, llm: LlmClient, transcriber: Transcriber | None, graph: GraphSpec[RunContext] | None
) -> Pipeline:
    settings = base.settings
    ears = ChannelEars(
        channels=base.channels,
        intake=VoiceIntake(transcriber, _voice_settings(settings)) if transcriber is not None else None,
        max_bytes=settings.voice.max_bytes,
        clock=base.clock,
        telemetry=base.telemetry,
    )
    return Pipeline(
        graph=graph or conversation_graph(),
        llm=llm,
        ears=ears,
        settings=_pipeline_settings(settings),
        clock=base.clock,
    )


def _turns(base: _Base, pipeline: Pipeline) -> TurnRunner:
    return TurnRunner(
        store=base.store,
        pipeline=pipeline,
        hooks=TurnHooks(
            sender_for=EventBroadcaster(base.channels, base.live).sender_for,
            on_recorded=_show_recorded(base.web),
            on_reply=base.delivery.enqueue,
            discard_media=_discard_media(base.web),
        ),
        clock=base.clock,
        telemetry=base.telemetry,
        failpoints=base.failpoints,
        max_attempts=base.settings.turn.max_attempts,
        max_running=base.settings.turn.max_running or _room(base.settings),
    )


def _room(settings: Settings) -> int:
    """Turns at a time: what the embedded model answers side by side, or what a hosted one bears."""
    return ChildSettings(model_path=settings.local_model_path).slots if settings.llm.model == "local" else 64


def _inbox(base: _Base, worker: Worker, rules: Mapping[tuple[str, str], AccessRule]) -> Inbox:
    return Inbox(
        store=base.store,
        access=AccessPolicy(book=base.store.pairings, clock=base.clock, rules=rules),
        turns=worker,
        clock=base.clock,
        telemetry=base.telemetry,
        failpoints=base.failpoints,
        max_queue_per_thread=base.settings.turn.max_queue_per_thread,
        posting=[key for key, channel in base.channels.items() if isinstance(channel, PostingChannel)],
        say=base.delivery.say,
    )


def _rules(posting: Iterable[BuiltChannel]) -> dict[tuple[str, str], AccessRule]:
    return {(one.adapter.name, one.adapter.account): one.rule for one in posting}


def _leases(
    posting: Iterable[BuiltChannel], coordinator: ProcessingCoordinator
) -> dict[tuple[str, str], TokenLease]:
    folder = lock_folder(environment())
    return {
        (one.adapter.name, one.adapter.account): TokenLease(
            channel=one.adapter.name, token=one.token, coordinator=coordinator, folder=folder
        )
        for one in posting
    }


def delivery_guarantees(settings: Settings) -> list[tuple[str, str]]:
    """What each enabled channel promises about its answers, in words."""
    clock = SystemClock()
    timeline = StoreTimeline(MemoryStore(), clock)
    adapters: list[Channel] = [one.adapter for one in posting_channels(settings, timeline, clock)]
    if settings.channels.web.enabled:
        addresses = Addresses(settings.server.host, settings.server.port, ())
        adapters.append(
            WebAdapter(
                _web_settings(settings, settings.data.dir, addresses, lambda _: False), timeline, clock
            )
        )
    if settings.channels.console.enabled:
        adapters.append(ConsoleAdapter(ConsoleSettings(), timeline, clock, lines=None, write=lambda _: None))
    return [(adapter.name, adapter.capabilities.guarantee) for adapter in adapters]


def _store(settings: Settings, data: DataDir) -> Store:
    if settings.storage.kind == "memory":
        return MemoryStore()
    full = settings.storage.synchronous == "full"
    return SqliteStore(data.store_path, synchronous="FULL" if full else "NORMAL")


def build_llm(settings: Settings, clock: Clock) -> LlmClient:
    """The configured model."""
    llm = settings.llm
    if llm.model.startswith(_SCRIPTED):
        return ScriptedLlm.from_spec(llm.model.removeprefix(_SCRIPTED), clock=clock)
    if llm.model == "local":
        child = ChildSettings(
            model_path=settings.local_model_path,
            context_tokens=llm.context_tokens,
            threads=llm.local.threads,
        )
        return LocalModel(child, clock=clock)
    key = llm.api_key.resolve() if llm.api_key is not None else None
    return LitellmClient(
        model=llm.model, clock=clock, api_base=llm.api_base, api_key=key, retries=llm.retries
    )


def build_transcriber(settings: Settings) -> Transcriber | None:
    """The configured recogniser; None when voice is off."""
    if not settings.voice.enabled:
        return None
    if settings.voice.transcriber.startswith(_SCRIPTED):
        return ScriptedTranscriber.always(settings.voice.transcriber.removeprefix(_SCRIPTED))
    return WhisperTranscriber(_voice_settings(settings))


def _voice_settings(settings: Settings) -> VoiceSettings:
    return VoiceSettings(
        model_dir=settings.voice_model_path,
        max_bytes=settings.voice.max_bytes,
        max_seconds=settings.voice.max_seconds,
        queue_limit=settings.voice.queue_limit,
        language=settings.voice.language,
    )


def _pipeline_settings(settings: Settings) -> PipelineSettings:
    return PipelineSettings(
        system_prompt=settings.bot.system_prompt,
        max_answer_tokens=settings.llm.max_tokens,
        temperature=settings.llm.temperature,
        llm_timeout_s=settings.llm.timeout_s,
        turn_timeout_s=settings.turn.timeout_s,
        context_tokens=settings.llm.context_tokens,
    )


def _token_check(settings: Settings, secrets: Secrets) -> Callable[[str], bool]:
    """A configured token is read at every check, so that a rotated one counts at once."""
    reference = settings.channels.web.token
    if reference is not None:
        return partial(_matches, reference)
    token = own_web_token(settings.web_token_path)
    secrets.add(token)
    return lambda presented: token_matches(presented, token)


def _matches(reference: SecretRef, presented: str) -> bool:
    try:
        return token_matches(presented, reference.resolve())
    except SecretUnavailable as error:
        # While the file is being replaced nobody gets in; the next try reads it again.
        _log.error("the web token cannot be read", extra={"reason": str(error)})
        return False


def _web_settings(
    settings: Settings, media_dir: Path, addresses: Addresses, token_check: Callable[[str], bool]
) -> WebSettings:
    return WebSettings(
        bot_name=settings.bot.name,
        token_check=token_check,
        allowed_hosts=addresses.hosts,
        allowed_origins=addresses.origins,
        media_dir=media_dir,
        text_chars=settings.channels.web.max_message_chars,
        voice_enabled=settings.voice.enabled,
        voice_bytes=settings.voice.max_bytes,
        voice_seconds=int(settings.voice.max_seconds),
    )


def _show_recorded(web: WebAdapter | None) -> Callable[[ThreadKey, TimelineEntry], None]:
    """Only the web page shows its readers what they said: the other channels' apps do that themselves."""

    def show(thread: ThreadKey, entry: TimelineEntry) -> None:
        if web is not None and thread.channel == web.name:
            web.entry_recorded(thread, entry)

    return show


def _discard_media(web: WebAdapter | None) -> Callable[[InboundMessage], Awaitable[None]]:
    async def discard(message: InboundMessage) -> None:
        if web is None or message.voice is None or message.thread.channel != web.name:
            return
        try:
            await web.discard(message.voice)
        except ParlourError:
            _log.warning("a voice note's file could not be removed", extra={"message_id": message.message_id})

    return discard


def _sweep_media(base: _Base) -> Callable[[], Awaitable[int]]:
    async def sweep() -> int:
        if base.web is None:
            return 0
        entries = [
            entry
            for thread in await base.store.open_threads()
            for entry in await base.store.open_entries(thread)
        ]
        return await base.web.sweep_media({e.body["voice"]["handle"] for e in entries if "voice" in e.body})

    return sweep
