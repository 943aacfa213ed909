"""The table [channels.irc] of parlour.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from gateway.config.platform_ids import PlatformIds
from gateway.config.posting import PostingSettings, allow_setting, deny_setting
from gateway.config.secrets import SecretRef
from gateway.config.section import setting

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")
_NICK = re.compile(r"[A-Za-z\[\]\\`_^{|}][A-Za-z0-9\[\]\\`_^{|}-]{0,29}")
_ROOM = re.compile(r"[#&][^\x00-\x20,\x7f:]{1,49}")
_ROOM_BYTES = 50

IDS = PlatformIds(
    person=re.compile(r"[^\s/:,]{1,150}"),
    room=re.compile(r"[#&][^\s/,:]{1,80}"),
    words="on IRC of a person the account at the network's services like ann, of a room like #team; "
    "in small letters, a / written as %2F",
)


def _check_server(value: str | None) -> str | None:
    if value is not None and _HOST.fullmatch(value) is None:
        raise _refused("is not the name of a host", "write for example irc.libera.chat")
    return value


def _check_nick(value: str) -> str:
    if _NICK.fullmatch(value) is None:
        raise _refused(
            "is not a nick", "write 1 to 30 letters, digits and signs that IRC allows, a letter first"
        )
    return value


def _check_room(value: str) -> str:
    if _ROOM.fullmatch(value) is None or len(value.encode()) > _ROOM_BYTES:
        raise _refused("is not the name of a room", 'write for example ["#team"]')
    return value


def _refused(what: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{what}", {"what": what, "fix": fix})


class IrcSettings(PostingSettings):
    """[channels.irc]: a bot on an IRC network; needs nothing but the server."""

    SECRETS = ("password", "server_password")
    NEEDED = "server"

    server: Annotated[str | None, AfterValidator(_check_server)] = setting(
        None, "The server's host name.", example="irc.libera.chat", expected="a host name"
    )
    port: int = setting(6697, "The server's port.", ge=1, le=65_535)
    tls: bool = setting(
        default=True,
        description="Whether the connection is encrypted, and the server's certificate checked. Without it "
        "passwords are sent only to this machine.",
    )
    nick: Annotated[str, AfterValidator(_check_nick)] = setting(
        "parlour",
        "The bot's nick. If it is in use, _ is added.",
        min_length=1,
        max_length=30,
        expected="a nick of 1 to 30 characters",
    )
    channels: tuple[Annotated[str, AfterValidator(_check_room)], ...] = setting(
        (),
        "The rooms that the bot joins.",
        example=["#team"],
        expected="a list of up to 50 rooms",
        max_length=50,
        strict=False,
    )
    login: Literal["none", "sasl", "nickserv"] = setting(
        "none",
        "How the bot logs in to its account at the network's services, with username and password: sasl "
        "before it is visible, nickserv by a message to NickServ.",
    )
    username: Annotated[str | None, AfterValidator(lambda value: value and _check_nick(value))] = setting(
        None,
        "The bot's account at the services; when absent: the nick.",
        example="parlour",
        expected="an account name of 1 to 30 characters",
    )
    password: SecretRef | None = setting(
        None, "The password of the bot's account, by reference.", example="file:secrets/irc-password"
    )
    server_password: SecretRef | None = setting(
        None, "The password of the server itself, by reference, where it has one.", example="env:IRC_PASSWORD"
    )
    identity: Literal["account", "hostmask"] = setting(
        "account",
        "How a person is known: account by the login at the network's services, messages of others are not "
        "accepted; hostmask by user@host, for networks without services. A nick alone is never enough: "
        "anybody can take it.",
    )
    max_lines: int = setting(
        12, "The most lines of one answer; the rest is left out, and the last line says so.", ge=2, le=100
    )

    allow: tuple[Annotated[str, AfterValidator(IDS.check_allowed)], ...] = allow_setting(
        "dm:ann", "room:#team", "room:#team/ann"
    )
    deny: tuple[Annotated[str, AfterValidator(IDS.check_person)], ...] = deny_setting("bob")

    def mistakes(self) -> Iterable[tuple[str, str, str]]:
        """See PostingSettings."""
        if self.login != "none" and self.password is None:
            yield (
                "password",
                f'is not set, but login is "{self.login}"',
                "refer to it, or set login to none",
            )
        if self.login == "none" and self.password is not None:
            yield "password", 'has no effect, as login is "none"', "set login to sasl, or remove it"
        sends_password = self.password is not None or self.server_password is not None
        if sends_password and not self.tls and self.server not in (None, "127.0.0.1", "::1", "localhost"):
            yield "tls", "is off, so everybody on the way could read the password", "set it to true"
