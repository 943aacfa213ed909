"""Fixtures for every test folder, and the closing lines that tell what did not run and why."""

from __future__ import annotations

import gc
import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import pytest
from hypothesis import HealthCheck, settings

from tests.support import busy_machine, default_store, quick_days, quick_logs, quick_page, quick_store
from tests.support.postgres_server import NEWEST, VERSIONS

pytest_plugins = [
    "tests.support.browser_fixture",
    "tests.support.postgres_fixture",
    "tests.support.quick_folders",
    "tests.support.scopes",
    "tests.support.worker_pool",
]

# A red build has to mean a change, not a busy machine or bad luck. To search for more:
# `make test ARGS="--hypothesis-profile=explore tests/properties"`.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("parlour", _CALM, derandomize=True, max_examples=50)
settings.register_profile("explore", _CALM, max_examples=1000)
settings.load_profile("parlour")

_LONG = frozenset({"browser", "models", "crash"})
"""Markers of tests that take seconds each."""
_LONG_PART = 0.85
"""The part of a run in which modules with such tests begin."""
_GARBAGE_THRESHOLD = 10_000
"""Objects between two garbage collections. With Python's 700 they take a fourteenth of a test's time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--soak`: see `soak`. `--shuffle`: see `pytest_collection_modifyitems`. `--postgres`: see
    `postgres_version`. `--store`: see `default_store`."""
    parser.addoption("--soak", action="store_true", help="kill as often as `make soak` does, for minutes")
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run modules and their tests in another order"
    )
    parser.addoption("--postgres", type=int, choices=VERSIONS, default=NEWEST, help="the version of Postgres")
    parser.addoption(
        "--store", choices=("sqlite", "postgres"), default="sqlite", help="where a test names no store"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Set up the process in which tests run, before its workers are forked. A fixture for the session would
    be looked up for each test, which takes longer than most of them."""
    folders = session.config._tmp_path_factory  # type: ignore[attr-defined] # pytest has no public name for it
    with pytest.MonkeyPatch.context() as patch:
        # Where a test names no folder for models and has none, an empty one is used: nothing is fetched into
        # the home folder of the person who runs the tests.
        patch.setenv("XDG_DATA_HOME", str(folders.mktemp("data-home")))
        # A third of the tests open a store, and few of them are about its file.
        quick_store.install(patch)
        quick_page.install(patch)
        quick_logs.install(patch)
        busy_machine.install(patch)
        return (yield)


@pytest.fixture(scope="session")
def stores_on_postgres(postgres_server_url: str) -> Iterator[None]:
    """With `--store postgres`, whole gateways in the tests' own process have their store there: each test
    has this fixture then."""
    with default_store.stores_on(postgres_server_url):
        yield


@pytest.fixture
def days_pass_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a module whose tests let days pass."""
    quick_days.install(monkeypatch)


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> bool:
    """Whether the kill runs are long; in `make test` they are as short as they can be and prove something."""
    return bool(request.config.getoption("--soak"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread the modules of each folder over the run: tests that kill gateways wait, and tests of the page
    compute, and beside one another they leave no processor idle. Those that start browsers, models or
    gateways come in its first part: at the end, no worker is then left alone with a long one. The order
    within a module stays, unless `--shuffle` changes it and that of the modules: no test may depend on
    either."""
    for item in items:
        # A real model computes for a minute, and for many on a machine that others use.
        if item.get_closest_marker("models") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1_200))
    if config.getoption("--store") == "postgres":
        about_sqlite = default_store.about_sqlite()
        for item in items:
            if isinstance(item, pytest.Function):
                item.fixturenames.insert(0, "stores_on_postgres")
            if item.nodeid.partition("[")[0] in about_sqlite:
                item.add_marker(pytest.mark.skip(reason="it is about SQLite"))
    seed = config.getoption("--shuffle")
    if seed is not None:
        # The same in every worker; the modules stay whole, for the sake of their fixtures.
        items.sort(key=lambda item: (_mixed(seed, _module(item)), _module(item), _mixed(seed, item.nodeid)))
    long = dict.fromkeys(_module(item) for item in items if _is_long(item))
    if seed is None:
        short = dict.fromkeys(module for item in items if (module := _module(item)) not in long)
        places = _spread(long, _LONG_PART) | _spread(short, 1.0)
    else:
        places = dict.fromkeys(long, -1.0)
    items.sort(key=lambda item: places.get(_module(item), 0.0))


def _is_long(item: pytest.Item) -> bool:
    """Whether it has such a marker or is in such a folder. Its `keywords` have both, and take longer."""
    names = (*(mark.name for mark in item.iter_markers()), *_module(item).split("/"))
    return not _LONG.isdisjoint(names)


def _module(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def _spread(modules: Iterable[str], end: float) -> dict[str, float]:
    """The place of each module from 0 to `end`; the modules of a folder are at equal distances."""
    folders: dict[str, list[str]] = {}
    for module in modules:
        folders.setdefault(str(PurePosixPath(module).parent), []).append(module)
    return {
        module: end * (number + 0.5) / len(folder)
        for folder in folders.values()
        for number, module in enumerate(folder)
    }


def _mixed(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest()


def pytest_collection() -> None:
    """What is made while tests are collected stays: to look for garbage in it takes a sixth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What ten thousand collected tests consist of stays until the end: no garbage collection looks at it,
    not even once before."""
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD)
    gc.enable()


@pytest.fixture(autouse=True)
def _logging_as_found() -> Iterator[None]:
    """`configure_logging` sets up the whole process: take back what a test set."""
    names = (None, "asyncio", "adapters", "gateway", "pipeline", "voice")
    loggers = [logging.getLogger(name) for name in names]
    found = [(logger, logger.level, logger.handlers[:], logger.filters[:]) for logger in loggers]
    yield
    for logger, level, handlers, filters in found:
        if logger.level != level:  # to set it clears what all loggers keep
            logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.filters[:] = filters


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a green run would hide: the figures that tests recorded, and what was skipped and why."""
    _show_figures(terminalreporter)
    _show_skipped(terminalreporter)


def _show_figures(terminalreporter: pytest.TerminalReporter) -> None:
    figures = [
        f"{name}: {value}"
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in report.user_properties
    ]
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)


def _show_skipped(terminalreporter: pytest.TerminalReporter) -> None:
    groups: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        folder = PurePosixPath(report.nodeid.split("::", 1)[0]).parent
        groups[str(folder), _reason(report)] += 1
    if not groups:
        return
    terminalreporter.section("not run here")
    for (where, reason), count in sorted(groups.items()):
        terminalreporter.write_line(f"{where}: {count} {'test' if count == 1 else 'tests'} ({reason})")


def _reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    words = where[2] if isinstance(where, tuple) else str(where)
    return words.removeprefix("Skipped: ")
