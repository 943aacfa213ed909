"""Build a gateway from settings: the composition root, the only module that knows every implementation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from gateway.access.policy import AccessPolicy
from gateway.access.token_budgets import DailyBudgets
from gateway.agents.agent_book import AgentBook
from gateway.app.after_turn import build_after_turn
from gateway.app.agents import build_agents, model_slots
from gateway.app.attachments import build_conversation_files
from gateway.app.bursts import build_bursts
from gateway.app.bus import build_thread_cache
from gateway.app.commands import build_commands
from gateway.app.components import Extras, Foundation, build_components, reply_files
from gateway.app.heartbeat import Heartbeat
from gateway.app.inbox import build_inbox
from gateway.app.lifecycle import Gateway, GatewayParts
from gateway.app.page_guests import build_page_guests
from gateway.app.questions import build_questions
from gateway.app.server import build_server
from gateway.app.shared_state import SharedState, build_shared_state, keep_copies
from gateway.app.sharing import (
    downloads_of,
    owner_of,
    publish_recorded,
    publish_reply,
    shared_accounts,
    shared_coordinator,
    shared_outbox,
)
from gateway.app.shield import gateways_shield
from gateway.app.signals import ReadyReplies, subscribe_channels, subscribe_worker
from gateway.app.tools import SharedTools, build_shared_tools
from gateway.app.voice import Voice, build_transcriber, live_settings, voice_settings, with_memory
from gateway.channels.registry import key_of
from gateway.channels.token_lease import TokenLease, lock_folder
from gateway.cluster.bus import EVERY_OWNER
from gateway.cluster.signals import Release
from gateway.config import Secrets, Settings, environment
from gateway.delivery.outbox import Delivery
from gateway.delivery.poster import Posting
from gateway.ingress.inbox import Inbox
from gateway.ingress.room_history import ChannelRooms, RoomRule
from gateway.interactions.question_expiry import QuestionExpiry
from gateway.runtime.data_dir import DataDir
from gateway.scheduling.crisis_notices import NoticeJobs
from gateway.scheduling.jobs import JobRunner
from gateway.speech.live_sessions import LiveSpeechService
from gateway.speech.voice_notes import VoiceNoteTranscriber
from gateway.storage.owners import SharedStore
from gateway.turns.after_turn import AfterTurn
from gateway.turns.commands import SessionCommands
from gateway.turns.elsewhere import look_interval
from gateway.turns.live_thread import IdleWork
from gateway.turns.runner import TurnRunner
from gateway.turns.turn_hooks import TurnHooks
from gateway.turns.worker import Worker
from pipeline.domain.ids import AccountKey
from voice.streaming.vad_client import VadClient
from voice.transcriber import Transcriber
from voice.transcription.voice_note import VoiceIntake

__all__ = ["Extras", "build"]


def build(settings: Settings, secrets: Secrets, extras: Extras | None = None) -> Gateway:
    """Build a gateway. Claims the data folder; starts nothing else.

    Raises ConfigurationError with a readable message, after releasing the folder.
    """
    data = DataDir.claim(settings.data.dir, shared=settings.cluster.shared)
    try:
        return _build(settings, secrets, extras or Extras(), data)
    except BaseException:
        data.release()
        raise


def _build(settings: Settings, secrets: Secrets, extras: Extras, data: DataDir) -> Gateway:
    base = build_components(settings, secrets, extras, data)
    delivery, forgetful = _delivery(base), extras.transcriber or build_transcriber(settings)
    transcriber = extras.transcriber or with_memory(forgetful, settings, base.preferences, base.clock)
    named, cluster, outbox = owner_of(base), settings.cluster, shared_outbox(base, delivery)

    def when_idle(thread: str, work: IdleWork) -> Awaitable[bool]:
        return worker.when_idle(thread, work)

    shared = build_shared_state(base)
    access, jobs = _access(base, shared), _jobs(base)
    tools, rooms = _shared_tools(base, named, access, jobs), _rooms(base)
    heartbeat = Heartbeat(base, tools, access, jobs, shared.still_elected(base))
    tools = heartbeat.with_watches(tools)
    agents = build_agents(base, tools, _voice_notes(base, transcriber, forgetful), rooms)
    unanswered, expiries, stopped = build_questions(base, access)
    after = build_after_turn(base, jobs, agents.book, tools, when_idle)
    replies = None if cluster.shared else ReadyReplies(base.bus, delivery.enqueue)
    heartbeat.attach(agents.by_name, agents.lines)
    commands = build_commands(base, agents.book, tools, access, heartbeat.port, stopped)
    turns = _turns(base, agents.book, commands, heartbeat, delivery, replies, expiries, after, tools)
    worker = _worker(base, turns, tools, replies)
    keep_copies(base, shared, heartbeat.scheduler, rooms, worker)
    inbox = build_inbox(
        base, access, worker, named, delivery, tools, rooms, agents.book, turns, expiries.words, unanswered
    )
    gateway = Gateway(
        GatewayParts(
            data=data,
            store=base.store,
            files=base.files,
            reading=base.reading,
            bus=base.bus,
            people=base.people,
            guests=build_page_guests(base, tools, named, jobs, when_idle, rooms),
            health=inbox.health,
            channels=base.channels,
            inbox=inbox,
            worker=worker,
            accounts=base.accounts,
            delivery=delivery,
            addresses=base.addresses,
            models=base.models,
            voice=_voice(base, transcriber, inbox),
            tools=tools,
            agents=agents,
            expiries=expiries,
            jobs=jobs,
            shared=shared,
            heartbeat=heartbeat,
            crises=base.crises,
            memory=base.memory,
            crisis_vectors=base.crisis_vectors,
            clock=base.clock,
            remove_reactions=partial(base.taken.remove_left, base.store.finished),
            sweep_media=partial(base.page.sweep_media, base.store),
            expire_media=base.page.media.expire,
            background=base.tasks.background,
            turns=base.tasks.turns,
            deliveries=base.tasks.deliveries,
            leases=shared_accounts(base, outbox, _leases(base)) if cluster.shared else _leases(base),
            cluster=cluster,
            outbox=outbox,
            foreign=frozenset(key_of(one.adapter) for one in base.posting if one.foreign),
            left_out=base.left_out,
            cancel_unknown=None if base.api is None else base.api.runs.cancel_unknown,
        )
    )
    _show(gateway, base)
    return gateway


def _show(gateway: Gateway, base: Foundation) -> None:
    """Let Prometheus and the HTTP server, if there is one, show the gateway's state."""
    _count(base, gateway)
    if base.extras.http:
        gateway.server = build_server(gateway, base)


def _count(base: Foundation, gateway: Gateway) -> None:
    """Have the gateway's state counted for Prometheus."""
    base.telemetry.watch_channels(gateway.channel_statuses)
    base.telemetry.watch_state(lambda: gateway.ready, lambda: not base.bus.trouble)


def _subscribe(
    base: Foundation,
    worker: Worker,
    tools: SharedTools,
    replies: ReadyReplies | None,
) -> None:
    """Without `replies` each channel subscribes when this process gets its account."""
    if not base.settings.cluster.is_worker:
        return
    owner = owner_of(base)("")
    media = base.requests
    subscribe_worker(base.bus, owner=owner, worker=worker, approvals=tools.approvals, media=media)
    if replies is not None:
        subscribe_channels(base.bus, base.channels, base.broadcaster, replies)


def _access(base: Foundation, shared: SharedState) -> AccessPolicy:
    rules = {(one.adapter.name, one.adapter.account): one.rule for one in base.posting}
    if base.api is not None:
        rules[key_of(base.api.adapter)] = base.api.rule
    return AccessPolicy(
        book=base.store.pairings,
        clock=base.clock,
        rules={**rules, **base.extras.rules},
        guests=base.guests,
        fresh=None if shared.copies is None else shared.copies.fresh,
        usage=base.store.usage if base.settings.cluster.shared else None,
    )


def _jobs(base: Foundation) -> JobRunner:
    shared = base.settings.cluster.shared
    runner = JobRunner(
        book=base.store.jobs,
        clock=base.clock,
        spawn=base.tasks.background.spawn,
        count=base.telemetry.job_ended,
        redact=base.redactor.text,
        shared=base.store.jobs if shared and isinstance(base.store, SharedStore) else None,
        process=base.accounts.coordinator.owner if shared else "",
    )
    base.memory.use(runner)
    NoticeJobs(jobs=runner, store=base.store, wake=base.bus.wake, crash_labels=base.crash_labels)
    return runner


def _shared_tools(
    base: Foundation, owner_of: Callable[[str], str], access: AccessPolicy, jobs: JobRunner
) -> SharedTools:
    settings = base.settings
    budgets = DailyBudgets(
        usage=base.store.usage,
        clock=base.clock,
        settings=settings.budget,
        agents={name: profile.tokens for name, profile in settings.agents.items() if profile.tokens},
        person_of=base.people.person_of,
        on_spent=base.telemetry.model_called,
        spawn=partial(base.tasks.background.spawn, name="use"),
        shared=settings.cluster.shared,
    )
    return build_shared_tools(
        settings,
        base.documents,
        store=base.store,
        jobs=jobs,
        clock=base.clock,
        budgets=budgets,
        person_of=base.people.person_of,
        redactor=base.redactor,
        wake=base.bus.wake,
        send=lambda answer: base.bus.control(owner_of(answer.thread), answer),
        access=access,
        spawn=base.tasks.background.spawn,
        secrets=base.secrets,
        attached=build_conversation_files(base),
        files=base.files,
        crash_labels=base.crash_labels,
        shield=gateways_shield(base, budgets),
        groups=base.extras.tools,
    )


def _rooms(base: Foundation) -> ChannelRooms:
    rules = {
        key_of(one.adapter): RoomRule(messages=one.room_messages, access=one.rule) for one in base.posting
    }
    others = {key: RoomRule(access=rule) for key, rule in base.extras.rules.items()}
    return ChannelRooms(channels=base.channels, rules={**rules, **others}, store=base.store, clock=base.clock)


def _worker(base: Foundation, turns: TurnRunner, tools: SharedTools, replies: ReadyReplies | None) -> Worker:
    worker = Worker(
        store=base.store,
        coordinator=base.accounts.coordinator,
        turns=turns,
        clock=base.clock,
        supervisor=base.tasks.turns,
        withdraw=tools.approvals.withdraw,
        shared=shared_coordinator(base),
        ask_for=lambda thread: base.bus.control(EVERY_OWNER, Release(thread=thread)),
        look_s=look_interval(lambda: base.bus.workers, base.accounts.coordinator.owner),
        all_full=lambda: base.bus.room == 0,
    )
    _subscribe(base, worker, tools, replies)
    return worker


def _delivery(base: Foundation) -> Delivery:
    files = reply_files(base)
    posting = Posting(
        store=base.store,
        files=files,
        live=base.live,
        clock=base.clock,
        crash_labels=base.crash_labels,
        leases=base.accounts,
    )
    return Delivery(
        store=base.store,
        leases=base.accounts,
        channels=base.channels,
        queues=base.queues,
        posting=posting,
        files=files,
        timeline=base.timeline,
        clock=base.clock,
        telemetry=base.telemetry,
        crash_labels=base.crash_labels,
        voice=base.replies,
        shared=base.settings.cluster.shared,
    )


def _voice_notes(
    base: Foundation, transcriber: Transcriber | None, forgetful: Transcriber | None
) -> VoiceNoteTranscriber:
    """`forgetful` is the transcriber that keeps no transcripts."""
    settings = voice_settings(base.settings)
    intake, without_memory = (
        None if one is None else VoiceIntake(one, settings) for one in (transcriber, forgetful)
    )
    return VoiceNoteTranscriber(
        channel_of=partial(downloads_of, base),
        intake=intake,
        forgetful=without_memory,
        preferences=base.preferences,
        speech_of=base.speech_of,
        max_bytes=base.settings.voice.max_bytes,
        telemetry=base.telemetry,
    )


def _turns(
    base: Foundation,
    agents: AgentBook,
    commands: SessionCommands,
    heartbeat: Heartbeat,
    delivery: Delivery,
    replies: ReadyReplies | None,
    expiries: QuestionExpiry,
    after: AfterTurn,
    tools: SharedTools,
) -> TurnRunner:
    turn = base.settings.turn
    return TurnRunner(
        store=base.store,
        agents=agents,
        commands=commands,
        heartbeats=heartbeat.turns(),
        hooks=TurnHooks(
            events=base.bus.events,
            on_recorded=tools.ending(publish_recorded(base) if replies is None else base.page.show_recorded),
            on_reply=publish_reply(base) if replies is None else replies.publish,
            first_state=delivery.first_state,
            discard_media=base.page.discard_media,
            on_asked=expiries.asked,
            after=after,
            crises=base.crises,
            person_of=base.people.person_of,
            cache=build_thread_cache(base.settings, base.clock, base.telemetry),
        ),
        clock=base.clock,
        telemetry=base.telemetry,
        crash_labels=base.crash_labels,
        bursts=build_bursts(base, tools.approvals),
        max_attempts=turn.max_attempts,
        max_running=turn.max_running or model_slots(base.settings),
    )


def _voice(base: Foundation, transcriber: Transcriber | None, inbox: Inbox) -> Voice:
    """The parts for voice, of which the page gets its own."""
    voice = _speech(base, transcriber, inbox)
    live = voice.live if base.settings.voice.live.enabled else None
    base.page.attach_voice(live, base.reader, base.preferences, base.speech_of)
    return voice


def _speech(base: Foundation, transcriber: Transcriber | None, inbox: Inbox) -> Voice:
    if transcriber is None:
        return Voice(transcriber=None, listener=None, live=None, speaker=base.speaker)
    listener = VadClient(voice_settings(base.settings))
    live = LiveSpeechService(
        transcriber=transcriber,
        listener=listener,
        inbox=inbox,
        voices=base.preferences,
        speech_of=base.speech_of,
        clock=base.clock,
        answering=base.broadcaster.is_answering,
        running=base.broadcaster.running,
        supervisor=base.tasks.background,
        settings=live_settings(base.settings),
    )
    base.telemetry.watch_microphones(lambda: live.open_microphones)
    return Voice(transcriber=transcriber, listener=listener, live=live, speaker=base.speaker)


def _leases(base: Foundation) -> dict[AccountKey, TokenLease]:
    folder = lock_folder(environment())
    return {
        key_of(one.adapter): TokenLease(
            channel=one.adapter.name,
            token=one.token,
            coordinator=base.accounts.coordinator,
            folder=folder,
            shared=base.settings.cluster.shared,
        )
        for one in base.posting
        if one.token is not None
    }
