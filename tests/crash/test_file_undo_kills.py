"""Random acts on files and notes with deaths in between, taken back one by one, with deaths too.

100 acts; 200 with `--soak`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.main import main
from pipeline.domain.ids import identity_key
from pipeline.tools.confine import person_folder
from tests.support.file_acts import ACTS, POLICY, message, prepare, think, tree
from tests.support.gateway_process import SCRIPTED, GatewayDied, GatewayProcess
from tests.support.openai_server import FakeOpenAiServer
from tests.support.store_file import integrity
from tests.support.web_client import Disconnected, WebChat

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(400)]

_CRASHED = 137
_SHORT = ("change-begun:11", "effect-done-before:19", "audit-done-before:22", "turn-commit-before:1")
_LONG = (
    *_SHORT,
    *("effect-begun-before:17", "effect-begun-after:15", "effect-done-after:16", "audit-decided-after:17"),
)
"""Deaths in the order of the lives, one for each message. A death comes before the shield's limit of a minute
is reached, which a restart forgets."""
_UNDO_SHORT = ("undo-begun:20", "undo-written:10")
_UNDO_LONG = (*_UNDO_SHORT, "turn-commit-before:25", "inbox-commit-after:9")
_AT_ONCE = 12
_NOTHING_LEFT = "no change of a file"


async def test_random_acts_with_deaths_in_between_are_taken_back_to_the_byte_and_mode(
    tmp_path: Path, *, soak: bool
) -> None:
    deaths = _LONG if soak else _SHORT
    workspace = tmp_path / "data" / "workspace"
    prepare(person_folder(workspace, identity_key("web", "main", "owner")) / "files")
    (tmp_path / "policy.toml").write_text(POLICY)
    before = tree(workspace)
    async with FakeOpenAiServer(brain=think) as model:
        settings = (
            'llm.model="openai_compatible/fake"',
            f"llm.api_base={model.api_base}",
            SCRIPTED[1],
            'agent.completion="implicit"',
            "llm.context_tokens=1000000",
            'log.level="warning"',
            f"shield.policy={tmp_path / 'policy.toml'}",
            "turn.max_attempts=20",
        )
        async with GatewayProcess(tmp_path, overrides=settings) as gateway, WebChat() as chat:
            talk = _Talk(gateway, chat, deaths)
            for number in range(len(deaths)):
                await talk.say(message(number))
            assert talk.lives == []
            assert tree(workspace) != before
            assert _count(gateway.store_path, "tool <> '' AND undone_at = 0") > len(deaths) * ACTS / 2

            await gateway.kill()
            talk.lives = list(_UNDO_LONG if soak else _UNDO_SHORT)
            said = [""]
            while _NOTHING_LEFT not in said[-1]:
                said = await talk.say(*["/undo files"] * _AT_ONCE)
            assert talk.lives == []
            assert tree(workspace) == before
            said = await talk.say(*["/undo"] * (len(deaths) + 1))
            assert "no message in this conversation" in said[-1]
            assert await talk.say("hello") == ["1 messages"], "the model is shown nothing from before"
            assert await gateway.stop() == 0

            assert integrity(gateway.store_path) == "ok"
            assert _count(gateway.store_path, "undone_at = 0 OR after IS NULL") == 0
            assert _rows(gateway.store_path, "SELECT count(*) FROM made_folders") == [(0,)]
            verify = ["history", "--verify", "--set", f'data.dir="{gateway.data_dir}"']
            assert await asyncio.to_thread(main, verify) == 0


class _Talk:
    """A client that begins the next of the `lives` of the gateway, each with the label of its death, whenever
    the gateway has died; the life after the last one has no end."""

    def __init__(self, gateway: GatewayProcess, chat: WebChat, lives: Sequence[str]) -> None:
        self.lives = list(lives)
        self._gateway = gateway
        self._chat = chat
        self._sent = 0

    async def say(self, *texts: str) -> list[str]:
        """Send the texts at once, until each has its answer; the answers."""
        keys = {f"c{self._sent + number}": text for number, text in enumerate(texts)}
        self._sent += len(texts)
        while True:
            try:
                for key, text in keys.items():
                    await self._chat.send_text(key, text)
                return [await self._answer(await self._chat.accepted(key)) for key in keys]
            except Disconnected:
                await self._begin()

    async def _answer(self, message_id: str) -> str:
        def found() -> list[str]:
            roles = ("assistant", "notice", "error")
            return [line.text for role in roles for line in self._chat.seen.lines_of(message_id, role)]

        while not found():
            await self._chat.receive()
        return found()[0]

    async def _begin(self) -> None:
        while True:
            death = self.lives.pop(0) if self.lives else None
            try:
                await self._gateway.start(crash_at=death)
                await self._chat.connect(self._gateway.url, self._gateway.token)
            except (GatewayDied, Disconnected):
                assert await self._gateway.wait_exit() == _CRASHED
            else:
                return


def _count(store: Path, where: str) -> int:
    ((count,),) = _rows(store, f"SELECT count(*) FROM file_changes WHERE {where}")
    return int(count)


def _rows(store: Path, sql: str) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(store)) as db:
        return db.execute(sql).fetchall()
