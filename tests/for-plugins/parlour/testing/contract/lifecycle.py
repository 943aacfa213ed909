"""The contract of every channel: its name, its capabilities, its lifecycle and its errors.

Inbound items are in `inbound`, replies in `replies`.
"""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import get_args

import pytest

from adapters.channel import FailureKind, PostingChannel, ShowingChannel, shows
from parlour.testing.channel_case import ContractCase
from parlour.testing.contract.fixtures import CaseFixtures, Factory
from pipeline.domain import errors
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef

SECRET = "a-secret-of-the-platform"


@pytest.mark.asyncio
class LifecycleContract(CaseFixtures):
    """Its name, its capabilities, its lifecycle and its errors."""

    async def test_the_thread_key_survives_its_text_form_and_names_the_adapter(
        self, case: ContractCase
    ) -> None:
        item = await case.write("hello")
        assert ThreadKey.decode(item.thread.encode()) == item.thread
        assert (item.thread.channel, item.thread.account) == (case.adapter.name, case.adapter.account)
        assert (await case.write("hello again")).thread == item.thread

    async def test_the_capabilities_are_stated_in_words_and_numbers(self, case: ContractCase) -> None:
        capabilities = case.adapter.capabilities
        assert capabilities.text_limit > 0
        assert len(capabilities.guarantee) > 20
        assert isinstance(case.adapter, PostingChannel) != isinstance(case.adapter, ShowingChannel)
        assert shows(case.adapter) == isinstance(case.adapter, ShowingChannel)
        if isinstance(case.adapter, PostingChannel):
            # A placeholder becomes the answer by an edit.
            assert capabilities.edit or capabilities.resolution != "placeholder"
            assert capabilities.rates.edit_interval_s > 0
            assert capabilities.rates.chat_burst > 0
        else:
            assert (capabilities.edit, capabilities.resolution) == (False, "none")

    @pytest.mark.parametrize(
        "error",
        [
            errors.InvalidInput("the text is refused"),
            errors.StorageError("x"),
            errors.MediaUnavailable("x"),
            ConnectionResetError(SECRET),
            TimeoutError(SECRET),
            OSError(28, SECRET),
            KeyError(SECRET),
            RuntimeError(),
            Exception(SECRET),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_any_error_of_a_send_is_understood_as_a_failure(
        self, case: ContractCase, error: Exception
    ) -> None:
        failure = case.adapter.classify(error)
        assert failure.kind in get_args(FailureKind)
        assert failure.message != ""
        assert SECRET not in failure.message

    async def test_a_foreign_media_reference_is_unavailable(self, case: ContractCase) -> None:
        forged = ("", "../x", "file:///etc/passwd", "http://127.0.0.1:9/x", "\x00" * 300)
        own = [MediaRef(channel=case.adapter.name, handle=handle) for handle in forged]
        others = [MediaRef(channel="elsewhere", handle=handle) for handle in (*forged, "/etc/passwd")]
        for ref in (*own, *others):
            with pytest.raises(errors.MediaUnavailable) as refused:
                await case.adapter.download(ref, max_bytes=10_000)
            assert [secret for secret in case.secrets if secret in str(refused.value)] == []

    async def test_health_is_up_while_running_and_down_after(self, case: ContractCase) -> None:
        await case.write("hello")
        assert case.adapter.health().state == "up"
        await case.stop()
        assert case.adapter.health().state == "down"

    async def test_cancelling_leaves_no_task_and_no_open_socket(
        self, factory: Factory, tmp_path: Path
    ) -> None:
        tasks, sockets = asyncio.all_tasks(), _sockets()
        async with factory(tmp_path) as case:
            item = await case.write("hello")
            await case.deliver(item, "The answer")
            assert asyncio.all_tasks() - tasks
        assert asyncio.all_tasks() == tasks
        assert _sockets() == sockets


def _sockets() -> int:
    """How many sockets this process has open."""
    count = 0
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names of descriptors, not paths
        try:
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:
            continue  # the one that the listing itself had open
    return count
