"""What is special about IRC: the log-in, who a person is, single lines of 512 bytes, lost connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.channel import Outgoing, Part
from adapters.login_errors import LoginRefused
from fake_irc import FakeIrc
from gateway.channels.supervisor import ChannelSupervisor
from gateway.config import SecretRef
from parlour.testing import ManualClock, SystemClock, WatchedInbox
from parlour_irc.adapter import IrcAdapter
from parlour_irc.connection import IrcConnection, connected
from parlour_irc.inbound import addressed_words
from parlour_irc.outbound import LEFT_OUT, TEXT_BYTES, Refused, render
from pipeline.domain.errors import ConfigurationError, InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, SessionCommand
from test_irc_contract import settings_for

CERTIFICATE = Path(__file__).with_name("localhost.pem")
PASSWORD = "correct-horse"


def secret(folder: Path, value: str) -> SecretRef:
    path = folder / "secret"
    path.touch(mode=0o600)
    path.write_text(value, "utf-8")
    return SecretRef.parse(f"file:{path}")


def thread(chat: str) -> ThreadKey:
    return ThreadKey(channel="irc", account="main", chat=chat)


def line(text: str) -> Part:
    return Part(body={"text": text}, plain=text)


@asynccontextmanager
async def receiving(adapter: IrcAdapter) -> AsyncIterator[WatchedInbox]:
    """The adapter, up."""
    inbox = WatchedInbox()
    run = asyncio.create_task(adapter.run(inbox))  # noqa: TID251 - cancelled below
    try:
        async with asyncio.timeout(30):
            while adapter.health().state != "up":
                await asyncio.sleep(0.005)
                if run.done():
                    run.result()
        yield inbox
    finally:
        run.cancel()
        await asyncio.wait([run])


@asynccontextmanager
async def bot(server: FakeIrc, **given: Any) -> AsyncIterator[tuple[IrcAdapter, WatchedInbox]]:
    adapter = IrcAdapter(settings_for(server, **given), SystemClock())
    async with receiving(adapter) as inbox:
        yield adapter, inbox


# -- the log-in -------------------------------------------------------------------------------
async def test_the_bot_logs_in_by_sasl_before_it_is_visible(tmp_path: Path) -> None:
    async with FakeIrc() as server, bot(server, login="sasl", password=secret(tmp_path, PASSWORD)):
        assert server.bots[0].account == "parlour"
        commands = [text.split()[0] for text in server.lines]
        assert commands.index("AUTHENTICATE") < commands.index("JOIN")
        assert server.lines[0] == "CAP LS 302\r\n"


async def test_the_bot_logs_in_at_nickserv_by_the_servers_own_command(tmp_path: Path) -> None:
    async with FakeIrc() as server, bot(server, login="nickserv", password=secret(tmp_path, PASSWORD)):
        assert server.bots[0].account == "parlour"
        # A message to the nick NickServ would give the password to somebody who took it.
        assert [text for text in server.lines if "PRIVMSG" in text] == []


async def test_a_wrong_password_is_the_operators_and_is_tried_seldom(tmp_path: Path) -> None:
    async with FakeIrc() as server:
        given = settings_for(server, login="sasl", password=secret(tmp_path, "wrong-password"))
        with pytest.raises(LoginRefused, match="refuses the log-in") as refused:
            await IrcAdapter(given, SystemClock()).run(WatchedInbox())
    assert "wrong-password" not in str(refused.value)


async def test_the_password_of_the_server_is_sent_first(tmp_path: Path) -> None:
    async with FakeIrc(server_password="open-sesame") as server:
        async with bot(server, server_password=secret(tmp_path, "open-sesame")):
            assert server.lines[1] == "PASS open-sesame\r\n"
        with pytest.raises(LoginRefused):
            await IrcAdapter(
                settings_for(server, server_password=secret(tmp_path, "guess")), SystemClock()
            ).run(WatchedInbox())


async def test_a_nick_in_use_gets_a_sign_behind_it_and_the_bot_answers_to_that() -> None:
    async with FakeIrc() as server:
        server.taken = {"Parlour"}
        async with bot(server) as (adapter, inbox):
            assert adapter.health().detail == "as parlour_"
            ann = server.person("Ann")
            await server.deliver("Ann", "#team", "parlour_: hello", {"account": "ann"})
            item = await inbox.message("hello")
            assert (item.addressed, item.author.id) == (True, ann.id)


async def test_a_certificate_that_is_not_trusted_is_refused_before_the_password(tmp_path: Path) -> None:
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(CERTIFICATE)
    async with FakeIrc(tls=server_side) as server:
        given = settings_for(server, tls=True, login="sasl", password=secret(tmp_path, PASSWORD))
        with pytest.raises(ssl.SSLCertVerificationError):
            await IrcAdapter(given, SystemClock()).run(WatchedInbox())
        assert server.lines == []

        def trust() -> ssl.SSLContext:
            return ssl.create_default_context(cafile=str(CERTIFICATE))

        async with receiving(IrcAdapter(given, SystemClock(), trust=trust)):
            assert server.bots[0].account == "parlour"


# -- who a person is --------------------------------------------------------------------------
async def test_without_a_login_at_the_services_a_nick_is_no_person_and_gets_one_notice() -> None:
    async with FakeIrc() as server, bot(server) as (_, inbox):
        server.owners["Ann"] = ""
        for words in ("let me in", "hello?"):
            await server.deliver("Ann", "", words, {})
        bob = server.person("Bob")
        await server.say(server.private_chat(bob), bob, "hello")
        await inbox.message("hello")
        assert [one.author.id for one in inbox.offers] == ["bob"]
        await server.until(lambda: len(server.calls) > 0)
        shown = [str(call.payload["text"]) for call in server.calls]
        assert len(shown) == 1
        assert "by their account" in shown[0]


async def test_a_server_that_does_not_say_who_is_logged_in_is_refused_unless_masks_are_enough() -> None:
    async with FakeIrc() as server:
        server.offers = ["message-tags"]
        with pytest.raises(ConfigurationError, match="account-tag"):
            await IrcAdapter(settings_for(server), SystemClock()).run(WatchedInbox())
        async with bot(server, identity="hostmask") as (_, inbox):
            await server.deliver("Ann", "", "hello", {})
            assert (await inbox.message("hello")).author.id == "~user@" + "h" * 63


async def test_a_private_answer_is_not_given_to_somebody_who_took_the_nick() -> None:
    async with FakeIrc() as server, bot(server) as (adapter, _):
        server.owners["Ann"] = "mallory"
        with pytest.raises(Refused) as refused:
            await adapter.post(thread("ann"), line("your password"), key="k", reply_handle="Ann")
        assert adapter.classify(refused.value).kind == "not_found"
        server.owners["Ann"] = ""
        with pytest.raises(Refused):
            await adapter.post(thread("ann"), line("your password"), key="k", reply_handle="Ann")
        server.owners["Ann"] = "Ann"
        await adapter.post(thread("ann"), line("your answer"), key="k", reply_handle="Ann")
        assert [call.payload["text"] for call in server.calls] == ["your answer"]


async def test_two_accounts_never_have_one_id() -> None:
    async with FakeIrc() as server, bot(server) as (_, inbox):
        accounts = ("ann[", "ann{", "kate", "\u212aate", "Ann[")
        for number, account in enumerate(accounts):
            await server.deliver("Ann", "", f"hello {number}", {"account": account})
        await inbox.message("hello 4")
        assert [one.author.id for one in inbox.offers] == ["ann[", "ann{", "kate", "\u212aate", "ann["]


async def test_a_person_with_the_name_of_a_room_is_refused() -> None:
    async with FakeIrc() as server, bot(server) as (_, inbox):
        await server.deliver("Eve", "", "what was said here?", {"account": "#team"})
        ann = server.person("Ann")
        await server.say(server.private_chat(ann), ann, "hello")
        await inbox.message("hello")
        assert [one.author.id for one in inbox.offers] == ["ann"]


# -- rooms and lines --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parlour: hi", ("hi", True)),
        ("PARLOUR,hi", ("hi", True)),
        ("@parlour hi", ("hi", True)),
        ("parlour is nice", ("parlour is nice", False)),
        ("@parlours hi", ("@parlours hi", False)),
        ("parlours: hi", ("parlours: hi", False)),
    ],
)
def test_a_room_addresses_the_bot_by_its_nick(text: str, expected: tuple[str, bool]) -> None:
    assert addressed_words(text, "parlour") == expected


async def test_a_command_in_a_room_needs_the_nick() -> None:
    async with FakeIrc() as server, bot(server) as (_, inbox):
        for words in ("/new", "parlour: /new"):
            await server.deliver("Ann", "#team", words, {"account": "ann"})
        await inbox.until(lambda: len(inbox.offers) == 2)
        plain, command = inbox.offers
        assert isinstance(plain, InboundMessage)
        assert not plain.addressed
        assert isinstance(command, SessionCommand)
        assert command.name == "new"


async def test_an_answer_in_a_room_names_the_person_and_commands_no_other_bot() -> None:
    async with FakeIrc() as server, bot(server) as (adapter, _):
        await adapter.post(thread("#team"), line("hi"), key="k:0", reply_handle="Ann")
        await adapter.post(thread("#team"), line("!op mallory"), key="k:1")
        assert [call.payload["text"] for call in server.calls] == ["Ann: hi", " !op mallory"]
        with pytest.raises(Refused) as refused:
            await adapter.post(thread("#other"), line("hi"), key="k:2")
        assert adapter.classify(refused.value).kind == "permission"


async def test_a_room_that_cannot_be_joined_is_named_in_the_health() -> None:
    async with FakeIrc() as server:
        server.closed_rooms = {"#secret"}
        async with bot(server, channels=("#team", "#secret")) as (adapter, _):
            assert adapter.health().detail == "as parlour, not in #secret"


HOSTILE = "first\r\nQUIT :bye\nPRIVMSG #team :x\rJOIN 0\x00\x01DCC SEND\x01\u2028OPER a b\x85end"


@pytest.mark.parametrize(
    "text", [HOSTILE, f"```\n{HOSTILE}\n```", "🙂👩‍👩‍👧‍👦é" * 400, "x" * 5_000, "", "\x01\r\n"]
)
def test_no_text_makes_two_lines_of_one_and_no_character_is_cut(text: str) -> None:
    parts = render(Outgoing(text=text), max_lines=1_000)
    lines = [str(part.body["text"]) for part in parts]
    assert lines
    assert all(0 < len(one.encode()) <= TEXT_BYTES for one in lines)
    assert all(not set(one) & set("\r\n\0\x01\x85\u2028") for one in lines)
    assert "".join("".join(lines).split()).count("👩‍👩‍👧‍👦") == text.count("👩‍👩‍👧‍👦")


async def test_the_connection_itself_refuses_a_line_that_would_be_two() -> None:
    async with FakeIrc() as server, connected(settings_for(server)) as connection:
        for params in (
            ("PRIVMSG", "ann", "a\r\nQUIT"),
            ("PRIVMSG", "a b", "x"),
            ("PRIVMSG", "ann", "x" * 600),
        ):
            with pytest.raises(InvalidInput):
                await IrcConnection.send(connection, *params)
    assert [text for text in server.lines if not text.startswith("QUIT")] == []


def test_an_answer_with_too_many_lines_says_how_many_are_left_out() -> None:
    parts = render(Outgoing(text="\n\n".join(f"line {number}" for number in range(20))), max_lines=5)
    assert [part.plain for part in parts][-2:] == ["line 3", LEFT_OUT.format(count=16)]


# -- the connection ---------------------------------------------------------------------------
async def test_a_lost_connection_is_made_again_and_a_silent_one_is_tried() -> None:
    clock = ManualClock(1_700_000_000.0)
    async with FakeIrc() as server:
        adapter = IrcAdapter(settings_for(server), clock)
        supervisor, inbox = ChannelSupervisor(adapter, clock=clock, chance=lambda: 0.0), WatchedInbox()
        run = asyncio.create_task(supervisor.run(inbox))  # noqa: TID251 - cancelled below
        try:
            await server.until(lambda: supervisor.status.up)
            await clock.advance(60.0)
            await server.until(lambda: "PING alive\r\n" in server.lines)
            server.bots[0].close()
            await server.until(lambda: not supervisor.status.up and not server.bots)
            await server.until(lambda: "closed the connection" in supervisor.status.words)
            await clock.advance(1.0)
            await server.until(lambda: supervisor.status.up)
            ann = server.person("Ann")
            await server.say(server.private_chat(ann), ann, "still there?")
            assert (await inbox.message("still there?")).author.id == ann.id
        finally:
            run.cancel()
            await asyncio.wait([run])


async def test_a_message_that_cannot_be_stored_is_answered_in_words() -> None:
    async with FakeIrc() as server, bot(server) as (adapter, inbox):
        inbox.error = RuntimeError("the disk is full")
        ann = server.person("Ann")
        await server.say(server.private_chat(ann), ann, "hello")
        await server.until(lambda: len(server.calls) == 1)
        assert server.calls[0].payload["text"] == "Your message could not be stored. Please send it again."
        assert adapter.health().state == "up"
