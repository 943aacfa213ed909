"""A large cluster as events in a queue of events: messages arrive at random and wait where a part is busy.

The same seed gives the same result. Not simulated: the network, and a disk that is full of other work.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from bench.report import percentile
from bench.simulate_costs import Plan
from gateway.cluster.wakes import MOST_ASKED

_ROUND_TRIP_S = 0.0005
"""To Postgres and back, with the commit's wait for the disk."""
_CHUNK_S = 1.0
"""Tokens are counted by the second, not one by one."""
_WARM_SHARE = 0.3
"""The beginning of a run, in which the turns fill up, is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run shows. Times in seconds."""

    offered: float
    """Turns a second that arrive."""
    started: float
    """Turns a second that begin."""
    start_p50: float
    """From the arrival of a message to the beginning of its turn, where its thread has no other one."""
    start_p99: float
    token_p99: float
    """From the worker to the edge."""
    shown_p99: float
    """From the end of the model's answer to the call of the platform."""
    waiting: int
    """Messages that wait for a worker at the end."""
    takeover_p50: float
    """From the death of a worker to the new beginning of one of its turns."""
    takeover_p99: float
    taken_over: int


def simulate(plan: Plan, *, turns_per_s: float, seconds: float, seed: int = 1, kill: bool = True) -> Outcome:
    """Run the cluster for simulated `seconds` at one load; `kill` ends one worker at half of them."""
    return _Run(plan, turns_per_s, seconds, random.Random(seed), kill=kill).outcome()


class _Station:
    """Servers with one queue. Calls come in the order of time: work that arrives later is asked for later."""

    __slots__ = ("_free",)

    def __init__(self, servers: int) -> None:
        self._free = [0.0] * servers

    def serve(self, now: float, work: float) -> float:
        """The time at which work that arrives now is done."""
        begun = max(now, self._free[0])
        heapq.heapreplace(self._free, begun + work)
        return begun + work


@dataclass(slots=True)
class _Worker:
    cpu: _Station
    free: int
    announced: int = 0
    """The room that the others know of."""
    running: set[int] = field(default_factory=set)
    heard: int = 0
    """Wakes since the last look."""
    dead: bool = False


@dataclass(slots=True)
class _Turn:
    number: int
    thread: int
    arrived: float
    worker: int = -1
    life: int = 0
    """Raised by a takeover, so that what a dead worker had planned is dropped."""
    killed_at: float = -1.0
    waited_for_another: bool = False
    """Its thread had an earlier message."""


class _Run:
    def __init__(self, plan: Plan, rate: float, seconds: float, chance: random.Random, *, kill: bool) -> None:
        self.plan, self.rate, self.seconds, self.chance = plan, rate, seconds, chance
        self.costs = plan.costs
        self.database = _Station(plan.database_cores)
        self.bus = _Station(1) if plan.bus == "redis" else self.database
        self.edges = [_Station(1) for _ in range(plan.edges)]
        self.workers = [_Worker(_Station(1), plan.slots) for _ in range(plan.workers)]
        self.turns: dict[int, _Turn] = {}
        self.open: dict[int, deque[_Turn]] = {}
        """Messages by thread; the first one runs or waits for a worker."""
        self.waiting: deque[_Turn] = deque()
        self.events: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0
        self.begun = 0
        self.starts: list[float] = []
        self.tokens: list[float] = []
        self.shown: list[float] = []
        self.takeovers: list[float] = []
        self._begin(kill=kill)

    def outcome(self) -> Outcome:
        counted = self.seconds * (1 - _WARM_SHARE)
        return Outcome(
            offered=self.rate,
            started=self.begun / counted,
            start_p50=_share(self.starts, 0.5),
            start_p99=_share(self.starts, 0.99),
            token_p99=_share(self.tokens, 0.99),
            shown_p99=_share(self.shown, 0.99),
            waiting=len(self.waiting),
            takeover_p50=_share(self.takeovers, 0.5),
            takeover_p99=_share(self.takeovers, 0.99),
            taken_over=len(self.takeovers),
        )

    def _begin(self, *, kill: bool) -> None:
        self._at(self.chance.expovariate(self.rate), self._arrive)
        for number in range(self.plan.processes):
            self._at(self.chance.random() * self.plan.beat_s, self._beat)
            if number < len(self.workers):
                self._at(self.chance.random() * self._between_looks(), self._looks(number))
                self._at(self.chance.random() * self.plan.announce_s, self._announces(number))
        if kill:
            self._at(self.seconds / 2, self._kill)
        while self.events and self.events[0][0] <= self.seconds:
            now, _, work = heapq.heappop(self.events)
            work(now)

    def _at(self, time: float, work: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, work))

    # -- a message ----------------------------------------------------------------------------

    def _arrive(self, now: float) -> None:
        self._at(now + self.chance.expovariate(self.rate), self._arrive)
        # A tenth of the threads writes nine tenths of the messages.
        busy = self.chance.random() < 0.9
        thread = self.chance.randrange(max(1, self.plan.threads // 10 if busy else self.plan.threads))
        turn = _Turn(self.count, thread, now)
        received = self._edge(turn).serve(now, self.costs["accept_edge"] + self.costs["platform_edge"] / 2)
        self._at(received, lambda then: self._accept(turn, then))

    def _accept(self, turn: _Turn, now: float) -> None:
        stored = self.database.serve(now, self.costs["turn_database"] * 0.1) + _ROUND_TRIP_S
        self._at(stored, lambda then: self._wake(turn, then))

    def _wake(self, turn: _Turn, now: float) -> None:
        queue = self.open.setdefault(turn.thread, deque())
        queue.append(turn)
        if len(queue) == 1:
            self._at(self._signal(now, round(self.plan.woken)), lambda then: self._woken(turn, then))
        else:
            turn.waited_for_another = True

    def _woken(self, turn: _Turn, now: float) -> None:
        if not self.plan.wakes_to_all:
            self._address(turn, now)
            return
        took = self.database.serve(now, self.costs["refused_database"])
        # The others are refused after it, and take the database's time all the same.
        refused = (self.plan.woken - 1) * self.costs["refused_database"] / self.plan.database_cores
        for _ in range(self.plan.database_cores if refused else 0):
            self.database.serve(now, refused)
        for worker in self.workers:
            worker.heard += 1
        free = [number for number in self._some_workers() if self._is_free(number)]
        if free:
            self._take(turn, free[0], took)
        else:
            self.waiting.append(turn)

    def _address(self, turn: _Turn, now: float) -> None:
        """Send the turn to the worker of its hash that has said that it has room. One that has none passes it
        on."""
        count = len(self.workers)
        first = turn.thread * 2_654_435_761 % count
        order = (number % count for number in range(first, first + count))
        open_to = (number for number in order if self.workers[number].announced > 0)
        for asked, number in enumerate(islice(open_to, MOST_ASKED)):
            self.workers[number].announced -= 1
            if self._is_free(number):
                arrived = self._signal(now, asked) if asked else now
                self._take(turn, number, self.database.serve(arrived, self.costs["refused_database"]))
                return
        self.waiting.append(turn)

    def _take(self, turn: _Turn, number: int, took: float) -> None:
        """Give the turn to a worker, which begins it when Postgres has answered."""
        worker = self.workers[number]
        worker.free -= 1
        worker.running.add(turn.number)
        self.turns[turn.number] = turn
        turn.worker = number
        life = turn.life
        self._at(took, lambda then: self._start(turn, life, then))

    def _start(self, turn: _Turn, life: int, now: float) -> None:
        if turn.life != life:
            return
        begun = self.workers[turn.worker].cpu.serve(now, self.costs["turn_worker"] / 2)
        if turn.killed_at >= 0:
            self.takeovers.append(begun - turn.killed_at)
        elif begun > self.seconds * _WARM_SHARE and not turn.waited_for_another:
            self.starts.append(begun - turn.arrived)
        if begun > self.seconds * _WARM_SHARE:
            self.begun += 1
        left = self.plan.model_s * (0.5 + self.chance.random())
        self._at(begun + min(left, _CHUNK_S), lambda then: self._tokens(turn, life, left, then))

    def _tokens(self, turn: _Turn, life: int, left: float, now: float) -> None:
        if turn.life != life:
            return
        carried = min(left, _CHUNK_S)
        number = self.plan.tokens * carried / self.plan.model_s
        kind = self.plan.bus
        work = number * self.costs[f"token_{kind}_server"]
        if kind == "postgres":
            work += number * self.plan.processes * self.costs["signal_postgres_server"]
        sent = self.bus.serve(now, work)
        self._at(sent, lambda then: self._relay(turn, number * self.costs[f"token_{kind}_edge"], now, then))
        left -= carried
        if left > 0:
            self._at(now + min(left, _CHUNK_S), lambda then: self._tokens(turn, life, left, then))
        else:
            ended = self.workers[turn.worker].cpu.serve(now, self.costs["turn_worker"] / 2)
            self._at(ended, lambda then: self._commit(turn, life, now, then))

    def _relay(self, turn: _Turn, work: float, sent: float, now: float) -> None:
        self.tokens.append(self._edge(turn).serve(now, work) - sent)

    def _commit(self, turn: _Turn, life: int, ended: float, now: float) -> None:
        if turn.life != life:
            return
        stored = self.database.serve(now, self.costs["turn_database"] * 0.9) + _ROUND_TRIP_S
        worker = self.workers[turn.worker]
        worker.running.discard(turn.number)
        worker.free += 1
        del self.turns[turn.number]
        self._at(stored, lambda then: self._committed(turn, ended, then))

    def _committed(self, turn: _Turn, ended: float, now: float) -> None:
        queue = self.open[turn.thread]
        queue.popleft()
        if queue:
            self._woken(queue[0], now)
        else:
            del self.open[turn.thread]
        self._at(self._signal(now, 1), lambda then: self._show(turn, ended, then))

    def _show(self, turn: _Turn, ended: float, now: float) -> None:
        self.shown.append(self._edge(turn).serve(now, self.costs["platform_edge"] / 2) - ended)

    # -- what happens by the clock --------------------------------------------------------------

    def _beat(self, now: float) -> None:
        probes = self.plan.probes_cost / self.plan.processes * self.plan.beat_s
        self.database.serve(now, self.costs["beat_database"] + probes)
        self._at(now + self.plan.beat_s, self._beat)

    def _looks(self, number: int) -> Callable[[float], None]:
        def look(now: float) -> None:
            worker = self.workers[number]
            if worker.dead:
                return
            heard = self.costs[f"signal_{self.plan.bus}_receiver"] + self.costs["refused_worker"]
            worker.cpu.serve(now, worker.heard * heard)
            worker.heard = 0
            work = self.costs["look_database"] + self.costs["look_open"] * len(self.open)
            found = self.database.serve(now, work)
            while self.waiting and self._is_free(number):
                self._take(self.waiting.popleft(), number, found)
            self._at(now + self._between_looks(), look)

        return look

    def _between_looks(self) -> float:
        return len(self.workers) / self.plan.looks

    def _announces(self, number: int) -> Callable[[float], None]:
        def announce(now: float) -> None:
            worker = self.workers[number]
            # A dead one is forgotten a little later; what it was sent meanwhile waits for a look.
            worker.announced = 0 if worker.dead else worker.free
            if self.plan.announcements and not worker.dead:
                self._signal(now, self.plan.processes)
            self._at(now + self.plan.announce_s, announce)

        return announce

    def _kill(self, now: float) -> None:
        worker = self.workers[0]
        worker.dead = True
        # Its last report is up to a beat old.
        gone = now + self.plan.ttl_s - self.chance.random() * self.plan.beat_s
        for number in sorted(worker.running):
            turn = self.turns[number]
            turn.life += 1
            turn.killed_at = now
            self._at(gone, lambda _then, turn=turn: self.waiting.appendleft(turn))  # type: ignore[misc]  # a default
        worker.running.clear()

    # -- helpers of both --------------------------------------------------------------------------

    def _signal(self, now: float, receivers: int) -> float:
        if self.plan.bus == "redis":
            return self.bus.serve(now, receivers * self.costs["signal_redis_server"])
        return self.bus.serve(now, self.plan.processes * self.costs["signal_postgres_server"])

    def _edge(self, turn: _Turn) -> _Station:
        return self.edges[turn.thread % len(self.edges)]

    def _some_workers(self) -> list[int]:
        """Two by chance, or all where there are few: which one is first to take a thread is chance."""
        count = len(self.workers)
        if count <= 2:
            return list(range(count))
        tried = [self.chance.randrange(count), self.chance.randrange(count)]
        return tried if any(map(self._is_free, tried)) else list(range(count))

    def _is_free(self, number: int) -> bool:
        worker = self.workers[number]
        return not worker.dead and worker.free > 0


def _share(values: list[float], share: float) -> float:
    return percentile(values, share) if values else 0.0
