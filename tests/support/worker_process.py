"""What a worker of `worker_pool.py` runs: it is a fork of the process that has collected the tests.

It takes scopes, runs their tests and sends the reports of each. It asks for the next scope before the last
test of the present one, because what that test tears down depends on the test that follows it.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from _pytest._io import TerminalWriter


def prepare(config: pytest.Config) -> None:
    """Make what all workers use, before the fork."""
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # pytest has no public name for it
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        # What is not written yet would be written by each worker again.
        reporter.flush()


def serve(session: pytest.Session, connection: Connection[Any, Any], number: int) -> NoReturn:
    """Run tests until there are none, and end the process."""
    # What the tests register runs before, and what was registered before the fork does not run.
    atexit.register(os._exit, 0)
    # The run takes the end of the connection for the end of this process: no fork of it may keep it open.
    os.register_at_fork(after_in_child=connection.close)
    # The run ends by it, also one that a shell has made to ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _become_worker(session.config, number)
        _Worker(session, connection).run()
    except (BrokenPipeError, EOFError):
        pass  # there is no run any more
    except BaseException as error:  # noqa: BLE001 - the words of any of them belong to the run's report
        words = "interrupted" if isinstance(error, KeyboardInterrupt) else traceback.format_exc()
        with suppress(OSError):
            connection.send(("ends", words))
    finally:
        # What the tests opened is closed once, however often the run is interrupted.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(BaseException):
            session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
        os._exit(1)


def _become_worker(config: pytest.Config, number: int) -> None:
    """Give the process output and files that it does not share, and no report on the terminal."""
    plugins = config.pluginmanager
    if plugins.has_plugin("terminalreporter"):
        plugins.unregister(name="terminalreporter")
    # pytest-timeout writes what hangs to the terminal before it fails the test, and fails without one.
    plugins.register(SimpleNamespace(_tw=TerminalWriter(io.StringIO())), "terminalreporter")
    capture = plugins.getplugin("capturemanager")
    if capture is not None and capture.is_globally_capturing():
        # The files that catch the output were opened before the fork, and are shared.
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    factory = config._tmp_path_factory  # type: ignore[attr-defined] # as above
    factory._basetemp = factory.getbasetemp() / f"w{number}"
    factory._basetemp.mkdir(mode=0o700)


class _Worker:
    def __init__(self, session: pytest.Session, connection: Connection[Any, Any]) -> None:
        self._session = session
        self._connection = connection
        self._reports: list[dict[str, Any]] = []
        """Of the test that runs."""
        self._runs = False
        session.config.pluginmanager.register(self)

    def run(self) -> None:
        self._runs = True
        items = self._session.items
        numbers = self._numbers()
        number = next(numbers, None)
        while number is not None:
            following = next(numbers, None)
            nextitem = None if following is None else items[following]
            item = items[number]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            self._connection.send(("ran", number, self._reports))
            self._reports.clear()
            number = following

    def _numbers(self) -> Iterator[int]:
        while True:
            self._connection.send(("next",))
            scope = self._connection.recv()
            if not scope:
                return
            yield from scope

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self._session.config
        self._reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))

    @pytest.hookimpl
    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        if not self._runs:
            return  # pytest tells each new plugin of all warnings so far
        values = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        try:
            pickle.loads(pickle.dumps(warning_message))
        except Exception:  # noqa: BLE001 - a class of warnings may fail in any way where it is made again
            values["warning_message"] = warnings.WarningMessage(
                str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
            )
        self._connection.send(("warned", values))
