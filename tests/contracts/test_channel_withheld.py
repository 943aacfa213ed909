"""No request of a delivery leaves a process that may have lost the account, however late that is noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.channel import Outgoing
from adapters.withheld import RequestWithheld, check_before_request, set_check
from parlour.testing.channel_case import ContractCase
from parlour.testing.contract import Factory
from parlour.testing.posting_case import PostingCase
from pipeline.domain.errors import StorageError
from tests.contracts.channel_cases import discord, slack, telegram
from tests.support.platforms.platform import FakePlatform
from tests.support.tables import each


def _posting(case: ContractCase) -> PostingCase[FakePlatform]:
    assert isinstance(case, PostingCase)
    return case


def _refusing_after(number: int) -> Callable[[], None]:
    """A check that lets so many requests leave."""
    left = [number]

    def check() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise StorageError("another process may send instead")

    return check


@each("factory, passed", [(telegram, 0), (discord, 0), (slack, 0), (slack, 1)])
async def test_a_request_that_is_withheld_shows_nothing_and_counts_as_not_sent(
    factory: Factory, passed: int, tmp_path: Path
) -> None:
    # Slack's is checked twice: before the SDK is called, and where the headers are written.
    async with factory(tmp_path) as opened:
        case = _posting(opened)
        item = await case.write("hello")
        part = case.adapter.render(Outgoing(text="an answer"))[0]
        shown = await case.adapter.post(item.thread, part, key="m_1:0")
        changed = case.adapter.render(Outgoing(text="an older answer"))[0]
        calls = len([call for call in case.platform.calls if call.method == case.posts])
        for call in (
            case.adapter.post(item.thread, part, key="m_1:1"),
            case.adapter.edit(item.thread, shown.native_id, changed),
        ):
            set_check(_refusing_after(passed))
            with pytest.raises(Exception) as raised:  # noqa: PT011 - each adapter's own
                await call
            failure = case.adapter.classify(raised.value)
            assert (failure.kind, failure.maybe_delivered) == ("transient", False)
            assert "another process may send instead" in failure.message
        set_check(lambda: None)
        assert case.platform.bot_texts(case.chat) == ["an answer"]
        assert len([call for call in case.platform.calls if call.method == case.posts]) == calls
        # What it receives is not concerned.
        set_check(_refusing_after(0))
        assert (await case.write("more")).text == "more"
        set_check(lambda: None)


def test_without_a_check_every_request_leaves() -> None:
    check_before_request()
    set_check(_refusing_after(1))
    check_before_request()
    with pytest.raises(RequestWithheld, match="another process"):
        check_before_request()
    set_check(lambda: None)
