"""Metrics for Prometheus: counts of messages, turns and replies, and the duration of each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.runtime.cluster_figures import ClusterFigures
from gateway.runtime.measured import Counted, Spread
from pipeline.domain.clock import Clock
from pipeline.domain.events import ActionCompleted, LlmToken, PipelineEvent, TranscriptReady
from pipeline.domain.frozen import dataclass

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180)

_VISIBLE = (LlmToken, TranscriptReady)
"""What a user sees first of an answer."""


@dataclass(frozen=True, slots=True)
class _Stages:
    first_token: Spread
    first_visible: Spread
    final: Spread


class ChannelFigures(Protocol):
    """The measured values of a channel."""

    @property
    def channel(self) -> str: ...

    @property
    def account(self) -> str: ...

    @property
    def up(self) -> bool: ...

    @property
    def received_ago_s(self) -> float | None: ...

    @property
    def restarts(self) -> int: ...


class Telemetry:
    """One gateway's metrics, in a separate registry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.registry = CollectorRegistry()
        self._accepted = self._counter("parlour_accepted_total", "Inbound items made durable", "channel")
        self._duplicates = self._counter("parlour_duplicates_total", "Redelivered inbound items", "channel")
        self._refused = self._counter("parlour_refused_total", "Inbound items not let in", "channel")
        self._outcomes = self._counter("parlour_turns_total", "Finished turns", "outcome")
        self._actions = self._counter("parlour_tool_calls_total", "Calls of tools by outcome", "outcome")
        self._llm_tokens = self._counter(
            "parlour_llm_tokens_total", "Tokens that model calls took, in and out", "channel"
        )
        self._llm_cost = self._counter(
            "parlour_llm_cost_dollars_total", "What model calls cost, where the price is known", "channel"
        )
        self._wrong_tokens = self._counter("parlour_signins_failed_total", "Wrong access tokens", "where")
        self._deliveries = self._counter("parlour_deliveries_total", "Outbox rows by result", "result")
        self._feedback = self._counter("parlour_feedback_total", "Reactions of people to answers", "value")
        self._jobs = self._counter(
            "parlour_jobs_total", "Attempts at jobs by kind and result", "kind", "result"
        )
        self._heartbeats = self._counter("parlour_heartbeat_events_total", "Events of the heartbeat", "event")
        self._receive_to_ack = self._histogram(
            "parlour_receive_to_ack_seconds", "From reception to the durable inbox row"
        )
        self._queue_wait = self._histogram(
            "parlour_queue_wait_seconds", "From reception to the start of the turn"
        )
        self._transcription = self._histogram("parlour_transcription_seconds", "Hearing one voice note")
        self._stages = _Stages(
            first_token=self._histogram(
                "parlour_first_token_seconds", "From the start of the turn to the model's first token"
            ),
            first_visible=self._histogram(
                "parlour_first_visible_seconds", "From reception to the first words that the user sees"
            ),
            final=self._histogram("parlour_final_seconds", "From reception to the terminal event"),
        )
        self._running = 0
        running = self._gauge("parlour_turns_running", "Turns in progress")
        running.set_function(lambda: self._running)
        self._transcribing = self._gauge("parlour_notes_hearing", "Voice notes being heard or waiting for it")
        self._microphones = self._gauge("parlour_microphones_open", "People who talk live just now")
        self._cache_reads = self._counter(
            "parlour_thread_cache_reads_total", "Looks into the cache of threads by result", "result"
        )
        self._wakes = self._counter("parlour_wakes_total", "Wakes by whom they were sent to", "to")
        self._ready = self._gauge("parlour_ready", "1 while messages are taken, as /readyz says")
        self._bus = self._gauge("parlour_bus_up", "1 while signals between processes are carried")

    def accepted(self, channel: str, seconds: float) -> None:
        """Count an item that became durable `seconds` after it was received."""
        self._accepted.sums[channel] += 1
        self._receive_to_ack.observe(max(0.0, seconds))

    def duplicate(self, channel: str) -> None:
        """Count a recognised redelivery."""
        self._duplicates.sums[channel] += 1

    def refused(self, channel: str) -> None:
        """Count an item that was refused."""
        self._refused.sums[channel] += 1

    def model_called(self, channel: str, tokens: int, cost: float) -> None:
        """Count a model call: for an answer, summary, title or sub-agent. `cost` in dollars."""
        self._llm_tokens.sums[channel] += max(0, tokens)
        self._llm_cost.sums[channel] += max(0.0, cost)

    def job_ended(self, kind: str, result: str) -> None:
        """Count an attempt at a job: `done`, `later`, `failed` or `dead`."""
        self._jobs.sums[kind, result] += 1

    def cache_read(self, result: str) -> None:
        """Count a look into the cache of threads: `hit`, `miss` or `failed`."""
        self._cache_reads.sums[result] += 1

    def wake_sent(self, to: str) -> None:
        """Count a wake that was sent to `here`, the `owner`, a `chosen` worker, `all` or `none`."""
        self._wakes.sums[to] += 1

    def heartbeat_event(self, name: str) -> None:
        """Count an event of the heartbeat's scheduler."""
        self._heartbeats.sums[name] += 1

    def wrong_token(self, where: str) -> None:
        """Count a wrong token at the `page`, the `api` or the `metrics`."""
        self._wrong_tokens.sums[where] += 1

    def turn_started(self, received_at: float) -> None:
        """Count a turn that left the queue; `received_at` is a Unix time."""
        self._running += 1
        self._queue_wait.observe(max(0.0, self._clock.now() - received_at))

    def turn_ended(self, outcome: str) -> None:
        """Count the end of a turn that `turn_started` counted; `outcome` may be `interrupted`."""
        self._running -= 1
        self._outcomes.sums[outcome] += 1

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Measure the transcription of a voice note, also if it fails."""
        started = self._clock.monotonic()
        with self._transcribing.track_inprogress():
            try:
                yield
            finally:
                self._transcription.observe(self._clock.monotonic() - started)

    def delivered(self, result: str) -> None:
        """Count an outbox row that was `sent`, `retried` or `failed`."""
        self._deliveries.sums[result] += 1

    def feedback(self, value: str) -> None:
        """Count feedback on an answer: `up`, `down`, or `removed`."""
        self._feedback.sums[value] += 1

    def watch_microphones(self, count: Callable[[], int]) -> None:
        """Call `count` at each scrape for the number of open microphones."""
        self._microphones.set_function(count)

    def watch_state(self, ready: Callable[[], bool], bus_up: Callable[[], bool]) -> None:
        """Call both at each scrape: whether messages are taken, and whether the bus carries signals."""
        self._ready.set_function(ready)
        self._bus.set_function(bus_up)

    def watch_channels(self, read: Callable[[], Iterable[ChannelFigures]]) -> None:
        """Call `read` at each scrape for the channels' status. Call this once."""
        self.registry.register(_Channels(read))

    def watch_cluster(self, read: Callable[[], ClusterFigures]) -> None:
        """Call `read` at each scrape for what is known of the processes on the store. Call this once."""
        self.registry.register(_Cluster(read))

    def stages(self, received_at: float) -> TurnStages:
        """Measures the stages of one turn that begins now, and counts its tool calls."""
        return TurnStages(self._stages, self._actions, self._clock, received_at)

    def exposition(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counted:
        counted = Counted(name, text, labels, self._clock)
        self.registry.register(counted)
        return counted

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)

    def _histogram(self, name: str, text: str) -> Spread:
        spread = Spread(name, text, _SECONDS, self._clock)
        self.registry.register(spread)
        return spread


class _Channels(Collector):
    """The channels' values at the moment of the scrape."""

    def __init__(self, read: Callable[[], Iterable[ChannelFigures]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        labels = ("channel", "account")
        up = GaugeMetricFamily("parlour_channel_up", "1 while the channel receives", labels=labels)
        silent = GaugeMetricFamily(
            "parlour_channel_last_received_seconds",
            "Since the last sign of life from the platform",
            labels=labels,
        )
        restarts = CounterMetricFamily(
            "parlour_channel_restarts", "Times that the channel was started again", labels=labels
        )
        for one in self._read():
            names = (one.channel, one.account)
            up.add_metric(names, float(one.up))
            restarts.add_metric(names, one.restarts)
            if one.received_ago_s is not None:
                silent.add_metric(names, one.received_ago_s)
        yield from (up, silent, restarts)


class _Cluster(Collector):
    """The processes on the store, as this one knows them."""

    def __init__(self, read: Callable[[], ClusterFigures]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        owners = GaugeMetricFamily(
            "parlour_cluster_owners", "Processes that are alive, by role", labels=("role",)
        )
        for role, number in sorted(found.owners.items()):
            owners.add_metric((role,), number)
        yield owners
        yield from _release_figures(found)
        if found.beat_age_s is not None:
            yield GaugeMetricFamily(
                "parlour_cluster_beat_age_seconds",
                "Since this process last reported that it is alive",
                value=found.beat_age_s,
            )
        if found.room is not None:
            yield GaugeMetricFamily(
                "parlour_cluster_room", "Turns that all workers together could run more", value=found.room
            )
        if found.unowned is not None:
            yield GaugeMetricFamily(
                "parlour_threads_unowned", "Threads with work and no living process", value=found.unowned
            )


def _release_figures(found: ClusterFigures) -> Iterator[Metric]:
    versions = GaugeMetricFamily(
        "parlour_cluster_versions",
        "Processes that are alive, by version and data format",
        labels=("version", "format"),
    )
    for (version, form), number in sorted(found.versions.items()):
        versions.add_metric((version, str(form)), number)
    yield versions
    if found.format is not None:
        yield GaugeMetricFamily("parlour_store_format", "Data format of the store", value=found.format)
    if found.format_waiting is not None:
        yield GaugeMetricFamily(
            "parlour_store_format_waiting",
            "Steps of the data format that wait for processes of an older release to end",
            value=found.format_waiting,
        )


class TurnStages:
    """Measures the first token, the first visible event and the end of one turn, and counts its actions."""

    def __init__(self, stages: _Stages, actions: Counted, clock: Clock, received_at: float) -> None:
        self._stages = stages
        self._actions = actions
        self._clock = clock
        self._received_at = received_at
        self._started = clock.monotonic()
        self._token_seen = False
        self._visible_seen = False

    def note(self, event: PipelineEvent) -> None:
        """Note an event that the channel has got just now."""
        if isinstance(event, ActionCompleted):
            self._actions.sums["done" if event.success else "failed"] += 1
        if isinstance(event, LlmToken) and not self._token_seen:
            self._token_seen = True
            self._stages.first_token.observe(self._clock.monotonic() - self._started)
        visible = isinstance(event, _VISIBLE) or event.is_terminal
        if visible and not self._visible_seen:
            self._visible_seen = True
            self._stages.first_visible.observe(self._since_received())
        if event.is_terminal:
            self._stages.final.observe(self._since_received())

    def _since_received(self) -> float:
        return max(0.0, self._clock.now() - self._received_at)
