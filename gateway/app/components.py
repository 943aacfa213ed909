"""Build the shared parts of a gateway: store, page, channels, chat queues, model. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from adapters.channel import Channel, Timeline
from gateway.access.policy import AccessRule
from gateway.access.shared_attempts import SharedAttempts
from gateway.agents.documents import AgentDocuments
from gateway.agents.routes import AgentRoutes
from gateway.agents.speech_lookup import SpeechLookup
from gateway.app.bus import build_bus, build_shared_counts
from gateway.app.crisis_vectors import build_vector_judge
from gateway.app.leases import build_leases
from gateway.app.llm import ModelClients
from gateway.app.memory import Memory, build_memory
from gateway.app.platforms import BuiltChannel, LeftOut, built_channels
from gateway.app.reading import build_reader
from gateway.app.store import build_store, saved_graphs
from gateway.app.voice import build_read_aloud
from gateway.app.web import Page, make_page, metrics_check, token_check, voice_mode
from gateway.attachments.handed_media import MediaRequests
from gateway.channels.registry import ChannelRegistry
from gateway.channels.timeline import StoreTimeline
from gateway.cluster.bus import Bus
from gateway.cluster.shared_counts import SharedCounts
from gateway.config import DEFAULT_AGENT, Secrets, Settings, agent_speech
from gateway.delivery.acknowledgements import Acknowledgements
from gateway.delivery.chat_queue import ChatQueues
from gateway.delivery.event_router import EventBroadcaster
from gateway.delivery.preview import LiveReplies
from gateway.delivery.progress import Verbosity
from gateway.delivery.reply_files import ReplyFiles
from gateway.delivery.voice_replies import VoiceReplies
from gateway.files.folder_store import FolderFileStore
from gateway.files.links import FileLinks
from gateway.people.directory import PersonDirectory
from gateway.people.page_people import PageAccounts
from gateway.people.preferences import SharedPreferences
from gateway.reading.reader_client import SandboxedReader
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.data_dir import DataDir, own_key
from gateway.runtime.http_server import Addresses
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from gateway.safety.crisis_records import CrisisRecords
from gateway.safety.notices import notice_target
from gateway.speech.read_aloud import AnswerReader
from gateway.speech.voice_download import VoiceDownload
from gateway.storage.leases import AccountLeases
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey
from pipeline.domain.readings import FileReader
from pipeline.graph.definition.spec import GraphSpec
from pipeline.llm.client import LlmClient
from pipeline.memory.embedding import Embedder
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.context import RunContext
from pipeline.safety.vector_judge import VectorJudge
from pipeline.tools.tool import ToolGroup
from voice.synthesis.synthesizer import SpeechSynthesizer
from voice.transcriber import Transcriber

if TYPE_CHECKING:
    from gateway.app.api import Api

ChannelFactory = Callable[[Timeline], Channel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a host adds to the configured gateway: `parlour chat` a channel, tests and benches a model."""

    channels: tuple[ChannelFactory, ...] = ()
    rules: Mapping[AccountKey, AccessRule] = field(default_factory=dict)
    """Who may write on the posting channels among `channels`, by (channel, account)."""
    clock: Clock = field(default_factory=SystemClock)
    llm: LlmClient | None = None
    transcriber: Transcriber | None = None
    speaker: SpeechSynthesizer | None = None
    """Reads answers aloud."""
    file_reader: FileReader | None = None
    """Reads pictures and documents, in place of the gateway's own processes."""
    embedder: Embedder | None = None
    """Embeds what is remembered, in place of the configured model, and what the crisis gate judges."""
    store: Store | None = None
    bus: Bus | None = None
    counts: SharedCounts | None = None
    """Of a host that gives the bus: what processes count together."""
    graph: GraphSpec[RunContext] | None = None
    """The graph that runs for a message, in place of the conversation graph."""
    tools: tuple[ToolGroup, ...] = ()
    """Tool groups in addition to the bot's own."""
    crash_at: str | None = None
    http: bool = True
    """Whether to serve health, metrics and the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisors:
    """The owners of the gateway's tasks."""

    background: Supervisor = field(default_factory=Supervisor)
    turns: Supervisor = field(default_factory=Supervisor)
    deliveries: Supervisor = field(default_factory=Supervisor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The shared parts of one gateway."""

    settings: Settings
    secrets: Secrets
    extras: Extras
    clock: Clock
    tasks: Supervisors
    telemetry: Telemetry
    crash_labels: CrashLabels
    store: Store
    accounts: AccountLeases
    files: FolderFileStore
    reading: SandboxedReader
    """Reads pictures and documents, in processes that end with the gateway."""
    file_reader: FileReader
    """The same, or what the host gives in its place."""
    links: FileLinks
    crises: CrisisRecords
    memory: Memory
    crisis_vectors: VectorJudge | None
    """Judges beside the rules of the crisis gate; None where it is off."""
    bus: Bus
    counts: SharedCounts | None
    """What processes count together; None in a gateway that is alone."""
    wrong_elsewhere: Callable[[str], int]
    """Called with each wrong token's network; how many other processes had from it."""
    requests: MediaRequests | None
    """Asks other processes for files of platforms; None in a process that is alone."""
    people: PersonDirectory
    preferences: SharedPreferences
    timeline: StoreTimeline
    addresses: Addresses
    check_metrics_token: Callable[[str], bool]
    page: Page
    guests: PageAccounts
    documents: AgentDocuments
    api: Api | None
    posting: tuple[BuiltChannel, ...]
    """The channels on which other people write."""
    left_out: tuple[LeftOut, ...]
    channels: ChannelRegistry
    queues: ChatQueues
    live: LiveReplies
    taken: Acknowledgements
    broadcaster: EventBroadcaster
    speaker: SpeechSynthesizer | None
    reader: AnswerReader | None
    voice_download: VoiceDownload | None
    speech_of: SpeechLookup
    replies: VoiceReplies
    models: ModelClients
    redactor: Redactor


def build_components(settings: Settings, secrets: Secrets, extras: Extras, data: DataDir) -> Foundation:
    """Build the shared parts. Raises ConfigurationError with a readable message."""
    clock, tasks = extras.clock, Supervisors()
    crash_labels, store = CrashLabels(extras.crash_at), extras.store or build_store(settings, data.store_path)
    people, kept = PersonDirectory(store.identities), (data.media_path, store.blobs)
    preferences = SharedPreferences(store.voices, people)
    timeline, speech_of = StoreTimeline(store, clock), _speech_of(settings, store)
    addresses = Addresses(settings.server.host, settings.server.port, settings.server.public_origins)
    check, accounts = token_check(settings, secrets), build_leases(settings, store, clock)
    queues = ChatQueues(clock, tasks.deliveries, accounts.check)
    files, reading, telemetry = _files(settings, data, clock), build_reader(settings, clock), Telemetry(clock)
    links, wrong = _links(settings, data, files, clock), partial(telemetry.wrong_token, "page")
    guests = _guests(settings, store, clock, crash_labels, preferences)
    bus = extras.bus or build_bus(settings, clock, tasks.background, telemetry)
    counts, elsewhere = _counts(settings, extras, clock, tasks)
    page = make_page(settings, *kept, addresses, check, timeline, clock, wrong, links, guests, elsewhere)
    posting, left_out = built_channels(settings, timeline, clock)
    documents = AgentDocuments(settings, saved_graphs(settings))
    api = _api(settings, store, clock, addresses, telemetry, documents, elsewhere)
    channels = _channels(page, posting, api, [make(timeline) for make in extras.channels])
    aloud = build_read_aloud(settings, extras.speaker, tasks.background)
    taken = Acknowledgements(channels=channels, queues=queues, clock=clock)
    live = _live(settings, store, accounts, queues, clock, tasks, taken)
    memory = build_memory(settings, store.memories, clock, extras.embedder)
    return Foundation(
        settings=settings,
        secrets=secrets,
        extras=extras,
        clock=clock,
        tasks=tasks,
        telemetry=telemetry,
        crash_labels=crash_labels,
        store=store,
        accounts=accounts,
        files=files,
        reading=reading,
        file_reader=extras.file_reader or reading,
        links=links,
        memory=memory,
        crisis_vectors=build_vector_judge(settings, clock),
        crises=_crises(settings, data, store, clock),
        bus=bus,
        counts=counts,
        wrong_elsewhere=elsewhere,
        requests=MediaRequests(bus, store.blobs, clock) if settings.cluster.shared else None,
        people=people,
        preferences=preferences,
        timeline=timeline,
        addresses=addresses,
        check_metrics_token=metrics_check(settings, check),
        page=page,
        guests=guests,
        documents=documents,
        api=api,
        posting=posting,
        left_out=left_out,
        channels=channels,
        queues=queues,
        live=live,
        taken=taken,
        broadcaster=EventBroadcaster(channels, live),
        speaker=aloud.speaker,
        reader=aloud.reader,
        voice_download=aloud.download,
        speech_of=speech_of,
        replies=_voice_replies(aloud.reader, preferences, speech_of, channels, clock, tasks, crash_labels),
        models=ModelClients(settings, clock, extras.llm),
        redactor=Redactor(secrets.known_values, clock=clock),
    )


def _counts(
    settings: Settings, extras: Extras, clock: Clock, tasks: Supervisors
) -> tuple[SharedCounts | None, Callable[[str], int]]:
    """What processes count together, and what is called with the network of each wrong token."""
    counts = extras.counts if extras.bus else build_shared_counts(settings, clock)
    if counts is None:
        return None, lambda _network: 0
    return counts, SharedAttempts(counts, clock, partial(tasks.background.spawn, name="wrong tokens")).note


def _voice_replies(
    reader: AnswerReader | None,
    preferences: SharedPreferences,
    speech_of: SpeechLookup,
    channels: ChannelRegistry,
    clock: Clock,
    tasks: Supervisors,
    crash_labels: CrashLabels,
) -> VoiceReplies:
    return VoiceReplies(
        reader=reader,
        preferences=preferences,
        speech_of=speech_of,
        channels=channels,
        clock=clock,
        supervisor=tasks.deliveries,
        crash_labels=crash_labels,
    )


def _crises(settings: Settings, data: DataDir, store: Store, clock: Clock) -> CrisisRecords:
    key = own_key(data.crises_key_path)
    return CrisisRecords(key, store.crises, clock, notices=notice_target(settings))


def _api(
    settings: Settings,
    store: Store,
    clock: Clock,
    addresses: Addresses,
    telemetry: Telemetry,
    documents: AgentDocuments,
    wrong_elsewhere: Callable[[str], int],
) -> Api | None:
    """The API for other programs; None if it is off."""
    if not settings.api.enabled:
        return None
    from gateway.app.api import build_api  # noqa: PLC0415 - it loads what only workflows need

    return build_api(settings, store, clock, addresses, telemetry, documents, wrong_elsewhere)


def _guests(
    settings: Settings, store: Store, clock: Clock, crash_labels: CrashLabels, preferences: SharedPreferences
) -> PageAccounts:
    """The invited people of the page. Names that give a right are kept for those who have them."""
    mode, reserved = partial(voice_mode, preferences), settings.channels.web.editor
    return PageAccounts(store.page, clock, crash_labels, mode, reserved)


def _live(
    settings: Settings,
    store: Store,
    accounts: AccountLeases,
    queues: ChatQueues,
    clock: Clock,
    tasks: Supervisors,
    taken: Acknowledgements,
) -> LiveReplies:
    """The previews of answers."""
    return LiveReplies(
        store=store,
        leases=accounts,
        queues=queues,
        clock=clock,
        supervisor=tasks.background,
        show_work=_show_work(settings),
        taken=taken,
    )


def _speech_of(settings: Settings, store: Store) -> SpeechLookup:
    """The speech settings of every agent."""
    names = (DEFAULT_AGENT, *settings.agents)
    speech = {name: agent_speech(settings, name) for name in names}
    return SpeechLookup(speech, AgentRoutes(settings.every_route), store)


def _show_work(settings: Settings) -> Callable[[AccountKey], Verbosity]:
    """How much of the work an account shows: its own setting, else the general one."""
    own = {account.key: account.settings.show_work for account in settings.channels.accounts()}

    def wanted(account: AccountKey) -> Verbosity:
        return own.get(account) or settings.agent.show_work

    return wanted


def _channels(
    page: Page, posting: Iterable[BuiltChannel], api: Api | None, others: Iterable[Channel]
) -> ChannelRegistry:
    """Every channel."""
    adapters: list[Channel] = [*([page.adapter] if page.adapter else []), *(one.adapter for one in posting)]
    return ChannelRegistry((*adapters, *([] if api is None else [api.adapter]), *others))


def _files(settings: Settings, data: DataDir, clock: Clock) -> FolderFileStore:
    wanted = settings.files
    return FolderFileStore(
        data.files_path, keep_days=wanted.keep_days, thread_bytes=wanted.chat_mb * 1_000_000, clock=clock
    )


def _links(settings: Settings, data: DataDir, files: FolderFileStore, clock: Clock) -> FileLinks:
    """Links to files. Without the page they lead nowhere, so that no one gets one."""
    origins = settings.server.public_origins if settings.channels.web.enabled else []
    return FileLinks(files, own_key(data.links_key_path), clock, origin=next(iter(origins), ""))


def reply_files(base: Foundation) -> ReplyFiles:
    """The files of replies, for the deliveries of all channels."""
    return ReplyFiles(
        store=base.files,
        link_to=base.links.public,
        clock=base.clock,
        spawn=partial(base.tasks.background.spawn, name="files off the record"),
    )
