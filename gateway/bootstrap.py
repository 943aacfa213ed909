"""The composition root: settings in, a gateway out. The only place that knows every implementation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from adapters.channel import Channel, PostingChannel, Timeline
from adapters.web.security import AttemptLimit
from gateway.access import AccessPolicy, AccessRule
from gateway.app import Gateway, Parts
from gateway.broadcaster import EventBroadcaster
from gateway.budgets import DailyBudgets
from gateway.config import Secrets, Settings, environment
from gateway.coordinator import ProcessingCoordinator
from gateway.data_dir import DataDir
from gateway.delivery import Delivery
from gateway.failpoints import Failpoints
from gateway.hearing import ChannelEars
from gateway.inbox import Inbox
from gateway.lanes import Lanes
from gateway.live import LiveReplies
from gateway.live_speech import SpeechDesk
from gateway.mind import build_cheaper, build_llm, pipeline_settings
from gateway.page import Page, make_page, token_check
from gateway.posting import Posting
from gateway.posting_channels import BuiltChannel, posting_channels
from gateway.quota import Quota
from gateway.server import Addresses, Server
from gateway.speaking import AnswerReader, VoiceReplies
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from gateway.summaries import Summaries
from gateway.tasks import Supervisor
from gateway.telemetry import Telemetry
from gateway.timeline import StoreTimeline
from gateway.token_lease import TokenLease, lock_folder
from gateway.tooling import Tooling, build_tooling
from gateway.turns import TurnHooks, TurnRunner
from gateway.voice import (
    Voice,
    build_speaker,
    build_transcriber,
    live_settings,
    voice_settings,
    with_memory,
)
from gateway.worker import Worker
from pipeline.domain.clock import Clock, SystemClock
from pipeline.graph.spec import GraphSpec
from pipeline.llm.client import LlmClient
from pipeline.llm.local_process import ChildSettings
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from pipeline.service import Pipeline
from pipeline.tools.tool import ToolGroup
from pipeline.topologies import conversation_graph
from voice.intake import VoiceIntake
from voice.listener import Listener
from voice.speaker import Speaker
from voice.transcriber import Transcriber

_log = logging.getLogger(__name__)

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
    speaker: Speaker | None = None
    """Who reads answers aloud."""
    store: Store | None = None
    graph: GraphSpec[RunContext] | None = None
    """What a message walks through instead of the conversation."""
    tools: tuple[ToolGroup, ...] = ()
    """Groups of tools beside the bot's own."""
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
    timeline: StoreTimeline
    page: Page
    channels: Mapping[tuple[str, str], Channel]
    lanes: Lanes
    live: LiveReplies
    broadcaster: EventBroadcaster
    replies: VoiceReplies


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
    telemetry, failpoints = Telemetry(clock), Failpoints(extras.crash_at)
    background, threads, deliveries = Supervisor(), Supervisor(), Supervisor()
    store = extras.store or _store(settings, data)
    timeline = StoreTimeline(store, clock)
    addresses = Addresses(settings.server.host, settings.server.port, settings.server.public_origins)
    check = token_check(settings, secrets)
    page = make_page(settings, data.media_path, addresses, check, timeline, clock)
    posting = posting_channels(settings, timeline, clock)
    channels = _channels(page, posting, [make(timeline) for make in extras.channels])
    lanes = Lanes(clock, deliveries)
    speaker = extras.speaker or build_speaker(settings)
    reader = None if speaker is None else AnswerReader(speaker)
    live = LiveReplies(store=store, lanes=lanes, clock=clock, supervisor=background)
    base = _Base(
        settings=settings,
        clock=clock,
        telemetry=telemetry,
        failpoints=failpoints,
        store=store,
        timeline=timeline,
        page=page,
        channels=channels,
        lanes=lanes,
        live=live,
        broadcaster=EventBroadcaster(channels, live),
        replies=VoiceReplies(
            reader=reader,
            habits=store.voices,
            channels=channels,
            clock=clock,
            supervisor=deliveries,
            failpoints=failpoints,
        ),
    )
    delivery = _delivery(base)
    llm = extras.llm or build_llm(settings, clock)
    forgetful = extras.transcriber or build_transcriber(settings)
    transcriber = extras.transcriber or with_memory(forgetful, settings, store.voices, clock)
    coordinator = ProcessingCoordinator(store, clock, lease_s=settings.turn.lease_s)
    limits = pipeline_settings(settings)

    def wake(thread: str) -> None:
        worker.wake(thread)

    tooling = build_tooling(
        settings,
        store=store,
        clock=clock,
        llm=llm,
        cheaper=build_cheaper(settings, clock),
        budgets=DailyBudgets(usage=store.usage, clock=clock, settings=settings.budget),
        redactor=Redactor(secrets.known_values, clock=clock),
        limits=limits,
        wake=wake,
        groups=extras.tools,
    )
    pipeline = Pipeline(
        graph=extras.graph or conversation_graph(),
        llm=llm,
        ears=_ears(base, transcriber, forgetful),
        settings=limits,
        clock=clock,
        surroundings=tooling.surroundings,
    )
    turns = _turns(base, pipeline, delivery)
    worker = Worker(
        store=store,
        coordinator=coordinator,
        turns=turns,
        clock=clock,
        supervisor=threads,
        summaries=_summaries(base, llm, tooling, limits),
    )
    inbox = _inbox(base, worker, delivery, tooling, {**_rules(posting), **extras.rules})
    voice = _voice(base, transcriber, speaker, inbox, background)
    page.give_voice(voice.desk if settings.voice.live.enabled else None, reader, store.voices)
    gateway = Gateway(
        Parts(
            data=data,
            store=store,
            channels=base.channels,
            inbox=inbox,
            worker=worker,
            coordinator=coordinator,
            delivery=delivery,
            addresses=addresses,
            llm=llm,
            voice=voice,
            tooling=tooling,
            clock=clock,
            sweep_media=partial(page.sweep_media, store),
            background=background,
            turns=threads,
            deliveries=deliveries,
            leases=_leases(posting, coordinator),
        )
    )
    telemetry.watch_channels(gateway.channel_statuses)
    if extras.http:
        gateway.server = _server(gateway, base, addresses, check, posting)
    return gateway


def _channels(
    page: Page, posting: Iterable[BuiltChannel], others: Iterable[Channel]
) -> dict[tuple[str, str], Channel]:
    """Every channel by its name and account."""
    adapters: list[Channel] = [*([page.adapter] if page.adapter else []), *(one.adapter for one in posting)]
    return {(adapter.name, adapter.account): adapter for adapter in (*adapters, *others)}


def _server(
    gateway: Gateway,
    base: _Base,
    addresses: Addresses,
    check: Callable[[str], bool],
    posting: Iterable[BuiltChannel],
) -> Server:
    page = base.page.adapter
    return Server(
        addresses=addresses,
        routes=page.routes() if page else (),
        webhooks=[route for one in posting for route in one.routes],
        channels=gateway.channel_lines,
        ready=lambda: gateway.ready,
        metrics=base.telemetry.exposition,
        token_check=check,
        attempts=AttemptLimit(base.clock),
    )


def _delivery(base: _Base) -> Delivery:
    return Delivery(
        store=base.store,
        channels=base.channels,
        lanes=base.lanes,
        posting=Posting(store=base.store, live=base.live, clock=base.clock, failpoints=base.failpoints),
        timeline=base.timeline,
        clock=base.clock,
        telemetry=base.telemetry,
        failpoints=base.failpoints,
        voice=base.replies,
    )


def _ears(base: _Base, transcriber: Transcriber | None, forgetful: Transcriber | None) -> ChannelEars:
    """`forgetful` keeps nothing of what it hears."""
    settings = voice_settings(base.settings)
    intake, without_memory = (
        None if one is None else VoiceIntake(one, settings) for one in (transcriber, forgetful)
    )
    return ChannelEars(
        channels=base.channels,
        intake=intake,
        forgetful=without_memory,
        habits=base.store.voices,
        max_bytes=base.settings.voice.max_bytes,
        telemetry=base.telemetry,
    )


def _turns(base: _Base, pipeline: Pipeline, delivery: Delivery) -> TurnRunner:
    return TurnRunner(
        store=base.store,
        pipeline=pipeline,
        hooks=TurnHooks(
            sender_for=base.broadcaster.sender_for,
            on_recorded=base.page.show_recorded,
            on_reply=delivery.enqueue,
            discard_media=base.page.discard_media,
            can_speak=base.replies.possible,
        ),
        clock=base.clock,
        telemetry=base.telemetry,
        failpoints=base.failpoints,
        max_attempts=base.settings.turn.max_attempts,
        max_running=base.settings.turn.max_running or _room(base.settings),
    )


def _summaries(base: _Base, llm: LlmClient, tooling: Tooling, limits: PipelineSettings) -> Summaries:
    return Summaries(
        store=base.store,
        llm=llm,
        cheaper=tooling.surroundings.cheaper,
        budgets=tooling.surroundings.budgets,
        clock=base.clock,
        above=limits.summarise_above,
        timeout_s=limits.llm_timeout_s,
    )


def _room(settings: Settings) -> int:
    """Turns at a time: what the embedded model answers side by side, or what a hosted one bears."""
    return ChildSettings(model_path=settings.local_model_path).slots if settings.llm.model == "local" else 64


def _inbox(
    base: _Base,
    worker: Worker,
    delivery: Delivery,
    tooling: Tooling,
    rules: Mapping[tuple[str, str], AccessRule],
) -> Inbox:
    a_minute = base.settings.limits.messages_per_minute
    return Inbox(
        store=base.store,
        access=AccessPolicy(book=base.store.pairings, clock=base.clock, rules=rules),
        turns=worker,
        clock=base.clock,
        telemetry=base.telemetry,
        failpoints=base.failpoints,
        max_queue_per_thread=base.settings.turn.max_queue_per_thread,
        posting=[key for key, channel in base.channels.items() if isinstance(channel, PostingChannel)],
        say=delivery.say,
        quota=Quota(a_minute, base.clock) if a_minute else None,
        waiting=tooling.approvals,
    )


def _voice(
    base: _Base,
    transcriber: Transcriber | None,
    speaker: Speaker | None,
    inbox: Inbox,
    supervisor: Supervisor,
) -> Voice:
    if transcriber is None:
        return Voice(transcriber=None, listener=None, desk=None, speaker=speaker)
    listener = Listener(voice_settings(base.settings))
    desk = SpeechDesk(
        transcriber=transcriber,
        listener=listener,
        inbox=inbox,
        voices=base.store.voices,
        clock=base.clock,
        answering=base.broadcaster.is_answering,
        supervisor=supervisor,
        settings=live_settings(base.settings),
    )
    base.telemetry.watch_microphones(lambda: desk.open_microphones)
    return Voice(transcriber=transcriber, listener=listener, desk=desk, speaker=speaker)


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


def _store(settings: Settings, data: DataDir) -> Store:
    if settings.storage.kind == "memory":
        return MemoryStore()
    full = settings.storage.synchronous == "full"
    return SqliteStore(data.store_path, synchronous="FULL" if full else "NORMAL")
