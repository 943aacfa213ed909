"""A gateway with the page, and people who are invited to it, in the test's own process."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from adapters.web.inbound import threads_of
from gateway.people.page_people import DAY_S, invite_person, remove_person
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import Clock, SystemClock
from pipeline.llm.client import LlmClient
from pipeline.llm.scripted import ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.looks import look_again
from tests.support.web_client import Disconnected, WebChat

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPage:
    """The running gateway, and its page."""

    harness: GatewayHarness
    folder: Path
    clock: Clock

    @property
    def url(self) -> str:
        return self.harness.gateway.url

    @property
    def owner_token(self) -> str:
        """The gateway's access token."""
        return (self.folder / "web-token").read_text().strip()

    @property
    def store(self) -> Store:
        return self.harness.store

    async def invite(self, name: str) -> str:
        """The code of an invitation for a new person."""
        book = self.store.page.people
        made = await invite_person(book, name, now=self.clock.now(), valid_s=7 * DAY_S)
        assert made.code
        return made.code

    async def join(self, name: str) -> str:
        """The token of a browser of a new person, who has joined."""
        token = new_token()
        async with Client() as client:
            await client.join(self.url, await self.invite(name), token)
        return token

    async def remove(self, person: str) -> bool:
        """Remove a person by their id, as `parlour people remove` does."""
        book, now = self.store.page.people, self.clock.now()
        return await remove_person(book, person, threads=threads_of(person), now=now)

    async def erased(self) -> None:
        """Wait until no erasure waits."""
        while any(job.kind.endswith("erasure") for job in await self.store.jobs.listed(limit=99)):
            await look_again()

    async def upload(self, token: str, chat: str, content: bytes) -> str:
        """Upload a file for a message in a chat; its handle."""
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/files/{chat}", data=content, headers=headers) as response,
        ):
            assert response.status == 200, await response.text()
            return str((await response.json())["handle"])

    async def named(self, name: str) -> None:
        """Wait until a person is called so."""
        while all(one.name != name for one in await self.store.page.people.people()):
            await look_again()

    async def no_devices(self) -> None:
        """Wait until no device is signed in."""
        while await self.store.page.people.devices():
            await look_again()

    async def id_of(self, name: str) -> str:
        """The id of an invited person."""
        return next(one.id for one in await self.store.page.people.people() if one.name == name)


def new_token() -> str:
    """A token as a browser makes it."""
    return secrets.token_urlsafe(32)


class Client(WebChat):
    """A client of the page that can join by an invitation, and send any frame."""

    async def join(self, url: str, invitation: str, token: str, device: str = "Firefox on Linux") -> None:
        """Redeem an invitation, or sign in without one, with the client's own token. Raises Disconnected with
        the problem's code."""
        self.more = {"invitation": invitation, "device": device} if invitation else {}
        try:
            await self.connect(url, token)
        finally:
            self.more = {}

    async def ask(self, **frame: Any) -> Frame:
        """Send a frame with a client_id, and read until its answer."""
        client_id = f"t_{secrets.token_hex(8)}"
        await self._send({**frame, "client_id": client_id})
        return await self.wait_for(lambda got: got.get("client_id") == client_id)

    async def say(self, text: str) -> str:
        """Send a message; the answer's text."""
        client_id = f"t_{secrets.token_hex(8)}"
        await self.send_text(client_id, text)
        return (await self.answer(await self.accepted(client_id))).text

    async def send_bytes(self, data: bytes) -> None:
        """Send a binary frame."""
        await self._open_socket().send_bytes(data)

    async def send(self, **frame: Any) -> None:
        """Send a frame."""
        await self._send(frame)


@asynccontextmanager
async def open_page(
    folder: Path,
    *overrides: str,
    llm: ScriptedLlm | None = None,
    model: LlmClient | None = None,
    clock: Clock | None = None,
    **more: Any,
) -> AsyncIterator[OpenPage]:
    """Run a gateway with the page on the folder."""
    clock = clock or SystemClock()
    settings = ("channels.web.enabled=true", "server.port=0", *overrides)
    store = more.pop("store", None) or SqliteStore(folder / "parlour.sqlite3", synchronous="NORMAL")
    async with open_gateway(
        folder, *settings, llm=llm, model=model, clock=clock, store=store, **more
    ) as harness:
        yield OpenPage(harness=harness, folder=folder, clock=clock)


__all__ = ["Client", "Disconnected", "OpenPage", "new_token", "open_page"]
