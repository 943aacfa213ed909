"""Run the tests in several processes: `pytest --workers N`.

The tests are imported and collected once, and then each worker is forked with all of them. Workers take
scopes from one queue (`scopes.py`) and send reports; `worker_process.py` is what they run. A worker that dies
fails the test that it ran, and a new one runs the rest of its scope.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

from tests.support import worker_process
from tests.support.scopes import scope_of

_LEAVING_S = 30.0
"""How long workers may be silent while they close what their tests opened, when the run is interrupted."""
_ENDED = ("ended",)
"""What is received from a worker whose process has ended."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--workers`: see above."""
    parser.addoption(
        "--workers", type=int, default=0, metavar="N", help="processes that run the tests; 0: only this one"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected tests in workers where that is asked for, and there is something to run."""
    count = session.config.getoption("--workers")
    broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    if count < 1 or broken or session.config.option.collectonly:
        return None
    if not hasattr(os, "fork"):
        raise pytest.UsageError("--workers needs a system that can fork a process; use --workers 0 here")
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        # Neighbours in the report are seldom from the same file.
        reporter.showfspath = False
    _Pool(session).run(count)
    return True


@dataclass(kw_only=True)
class _Worker:
    pid: int
    connection: Connection[Any, Any]
    todo: deque[int] = field(default_factory=deque)
    """Numbers of the tests that it has taken and not reported; it runs the first."""
    words: str = ""
    """Why it ends early, if it said so."""


class _Pool:
    """The workers of a session, and the scopes that none has taken yet."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._scopes = _scopes(session.items)
        self._workers: dict[Connection[Any, Any], _Worker] = {}
        self._started = 0

    def run(self, count: int) -> None:
        """Return when every test has a report. Raises as pytest's own loop does where the run ends early."""
        try:
            for _ in range(min(count, len(self._scopes))):
                self._start()
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._receive(self._workers[connection])  # type: ignore[index] # `wait` gives back ours
                if self._session.shouldfail:
                    raise self._session.Failed(self._session.shouldfail)
                if self._session.shouldstop:
                    raise self._session.Interrupted(self._session.shouldstop)
            if self._scopes:
                raise RuntimeError(f"no worker runs the {sum(map(len, self._scopes))} tests that are left")
        finally:
            self._interrupt()

    def _start(self) -> None:
        number, self._started = self._started, self._started + 1
        worker_process.prepare(self._session.config)
        ours, theirs = Pipe()
        with _no_warning_of_native_threads():
            pid = os.fork()
        if pid == 0:
            try:
                for connection in (ours, *self._workers):
                    connection.close()
                worker_process.serve(self._session, theirs, number)
            finally:
                os._exit(1)
        theirs.close()
        self._workers[ours] = _Worker(pid=pid, connection=ours)

    def _receive(self, worker: _Worker) -> None:
        kind, *values = _received(worker.connection)
        match kind:
            case "next":
                scope = self._scopes.popleft() if self._scopes else []
                worker.todo.extend(scope)
                with suppress(OSError):  # that it has ended is received next
                    worker.connection.send(scope)
            case "ran":
                number, reports = values
                worker.todo.remove(number)
                self._report(number, map(self._read, reports))
            case "warned":
                self._session.config.hook.pytest_warning_recorded.call_historic(kwargs=values[0])
            case "ends":
                (worker.words,) = values
            case "ended":
                self._ended(worker)

    def _ended(self, worker: _Worker) -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        _, status = os.waitpid(worker.pid, 0)
        if not worker.todo:
            if worker.words or status:
                raise RuntimeError(f"a worker ended beside its tests: {worker.words or status}")
            return
        number = worker.todo.popleft()
        item = self._session.items[number]
        code = os.waitstatus_to_exitcode(status)
        words = worker.words or f"the process that ran the test ended with the exit code {code}"
        self._report(number, [pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call")])
        if worker.todo:
            self._scopes.appendleft(list(worker.todo))
        if self._scopes:
            self._start()

    def _read(self, data: dict[str, Any]) -> pytest.TestReport:
        hook = self._session.config.hook
        report = hook.pytest_report_from_serializable(config=self._session.config, data=data)
        assert isinstance(report, pytest.TestReport)
        return report

    def _report(self, number: int, reports: Iterable[pytest.TestReport]) -> None:
        item, hook = self._session.items[number], self._session.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _interrupt(self) -> None:
        """End the workers that still run, as Ctrl-C does; kill those that do not end."""
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGINT)
        while self._workers and (ready := wait(list(self._workers), _LEAVING_S)):
            for connection in ready:
                self._drop_when_ended(self._workers[connection])  # type: ignore[index] # as above
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)

    def _drop_when_ended(self, worker: _Worker) -> None:
        if _received(worker.connection) == _ENDED:
            del self._workers[worker.connection]
            os.waitpid(worker.pid, 0)


def _received(connection: Connection[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(connection.recv())
    except (EOFError, OSError):
        return _ENDED


def _scopes(items: Sequence[pytest.Item]) -> deque[list[int]]:
    """The numbers of the tests of each scope, in the order of their first tests."""
    scopes: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        scopes.setdefault(scope_of(item.nodeid), []).append(number)
    return deque(scopes.values())


@contextmanager
def _no_warning_of_native_threads() -> Iterator[None]:
    """From Python 3.12 on, a fork warns if there are threads. We have those of numpy and onnxruntime, which
    wait; a worker starts its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
