"""kill -9 while a removed person is erased: the next start completes it, and others keep what is theirs.

Covers: gateway/ingress/full_erasure.py, gateway/ingress/person_erasure.py, gateway/ingress/chat_deletion.py.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.offline import beside
from tests.end_to_end.test_off_the_record import found_in
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.looks import look_again
from tests.support.page_people import Client, Disconnected, new_token

pytestmark = pytest.mark.crash

SECRET = "theheronlandsatnine"


_CHAT = ("deletion-begun", "erase-before", "erase-after")
_PERSON = ("person-chats-erased", "person-forgotten", "person-compacted")


@pytest.mark.parametrize(
    ("action", "label"),
    [*(("remove", label) for label in _CHAT), *(("erase", label) for label in (*_CHAT, *_PERSON))],
)
async def test_a_removal_is_completed_after_a_kill(
    tmp_path: Path, action: str, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.0)) as gateway:
        await gateway.start(crash_at=f"{label}:1")
        options = ["--set", f'data.dir="{gateway.data_dir}"']
        tokens = {name: new_token() for name in ("Ann", "Ben")}
        async with Client() as ann, Client() as ben:
            for name, client in (("Ann", ann), ("Ben", ben)):
                assert await asyncio.to_thread(main, ["people", "invite", "--name", name, *options]) == 0
                found = re.search(r"#invitation=(\S+)", capsys.readouterr().out)
                assert found is not None
                await client.join(gateway.url, found[1], tokens[name])
            await ann.say(SECRET)
            await ben.say("stays for Ben")
            confirmed = ["--yes"] if action == "erase" else []
            assert await asyncio.to_thread(main, ["people", action, "Ann", *confirmed, *options]) == 0
            assert await gateway.wait_exit() == 137
            await gateway.start()
            with pytest.raises(Disconnected, match="wrong_token"):
                await ann.connect(gateway.url, tokens["Ann"])
            await _erased(gateway.store_path)
            history = await ben.connect(gateway.url, tokens["Ben"], after=0)
            texts = [frame["text"] for frame in history if frame["type"] == "entry"]
            assert texts == ["stays for Ben", "You said: stays for Ben"]
        await gateway.stop()
    assert found_in(gateway.data_dir, SECRET) == []


async def _erased(path: Path) -> None:
    """Wait until the gateway's book has no job."""

    async with beside(path, SqliteJobs) as book:
        while await book.listed(limit=9):
            await look_again()
