"""Check a long table of cases in one test: a separate test for each costs more than what it checks.

For functions without fixtures. A test with a few cases, or with slow ones, is parametrised as usual.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest

Check = Callable[..., Any]
_FAILURES = (Exception, pytest.fail.Exception)


def each(names: str, cases: Iterable[object]) -> Callable[[Check], Check]:
    """As `pytest.mark.parametrize` with `names` and `cases`, in one test, which checks all of them and lists
    those that fail. May be repeated."""
    wanted = [name.strip() for name in names.split(",")]
    table: list[Any] = [case if len(wanted) > 1 else (case,) for case in cases]
    assert table, "a table without cases checks nothing"

    def decorate(check: Check) -> Check:
        made = (
            _awaited(check, wanted, table)
            if inspect.iscoroutinefunction(check)
            else _called(check, wanted, table)
        )
        signature = inspect.signature(check)
        rest = [one for one in signature.parameters.values() if one.name not in wanted]
        # What pytest takes for the fixtures of the test.
        setattr(made, "__signature__", signature.replace(parameters=rest))  # noqa: B010 - unknown to its type
        return made

    return decorate


def _called(check: Check, names: Sequence[str], table: Sequence[Any]) -> Check:
    @wraps(check)
    def checked(**given: object) -> None:
        failed = []
        for case in table:
            try:
                check(**dict(zip(names, case, strict=True)), **given)
            except _FAILURES as error:
                failed.append(_words(case, error))
        _report(failed)

    return checked


def _awaited(check: Check, names: Sequence[str], table: Sequence[Any]) -> Check:
    @wraps(check)
    async def checked(**given: object) -> None:
        failed = []
        for case in table:
            try:
                await check(**dict(zip(names, case, strict=True)), **given)
            except _FAILURES as error:
                failed.append(_words(case, error))
        _report(failed)

    return checked


def _words(case: object, error: BaseException) -> str:
    return f"{case!r}: {type(error).__name__}: {error}"


def _report(failed: Sequence[str]) -> None:
    if failed:
        pytest.fail(f"{len(failed)} cases fail\n\n" + "\n\n".join(failed))
