"""Check a long table of cases in one test: a separate test for each costs more than what it checks.

For functions without fixtures. A test with a few cases, or with slow ones, is parametrised as usual.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Check = Callable[..., Any]
_FAILURES = (Exception, pytest.fail.Exception)


def each(names: str, cases: Iterable[object]) -> Callable[[Check], Check]:
    """As `pytest.mark.parametrize` with `names` and `cases`, in one test, which continues after a case that
    fails and lists each of them. May be repeated."""
    wanted = [name.strip() for name in names.split(",")]
    table = [case if len(wanted) > 1 else (case,) for case in cases]
    assert table, "a table without cases checks nothing"

    def decorate(check: Check) -> Check:
        signature = inspect.signature(check)
        rest = [one for one in signature.parameters.values() if one.name not in wanted]

        def arguments(case: Any) -> dict[str, object]:
            return dict(zip(wanted, case, strict=True))

        @wraps(check)
        def checked(**given: object) -> None:
            _report([_problem(case, lambda case=case: check(**arguments(case), **given)) for case in table])

        @wraps(check)
        async def checked_in_turn(**given: object) -> None:
            found = []
            for case in table:
                try:
                    await check(**arguments(case), **given)
                except _FAILURES as error:
                    found.append(_words(case, error))
            _report(found)

        made = checked_in_turn if inspect.iscoroutinefunction(check) else checked
        made.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # read by inspect
        return made

    return decorate


def _problem(case: object, check: Callable[[], object]) -> str:
    try:
        check()
    except _FAILURES as error:
        return _words(case, error)
    return ""


def _words(case: object, error: BaseException) -> str:
    return f"{case!r}: {type(error).__name__}: {error}"


def _report(found: list[str]) -> None:
    failed = [words for words in found if words]
    if failed:
        pytest.fail(f"{len(failed)} cases fail\n\n" + "\n\n".join(failed))
