"""The table of who may do what, and the inbound items and people that its rows and columns name.

Outcomes: `in` (it enters), `code` (refused, with a pairing code), `words` (refused in words), `-` (refused in
silence). The columns of a room end in what no one said to the bot.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from gateway.access.policy import AccessMode, AccessPolicy, AccessRule, Allowed, Denied
from gateway.storage.memory import MemoryStore
from gateway.storage.pairings import PairedChat, PairingRequest
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, Inbound, InboundMessage, MediaRef, SessionCommand

ROOM, OTHER_ROOM = "room-1", "room-2"
POSTING = ("telegram", "slack", "discord")
MODES: tuple[AccessMode, ...] = ("pairing", "list", "open")

PAIRING_PRIVATE = """
                  text   command voice  file   edit   forward quote  press  stop
allowed-dm        in     in      in     in     in     in      in     in     in
allowed-member    code   code    code   code   code   code    code   words  code
allowed-elsewhere code   code    code   code   code   code    code   words  code
paired            in     in      in     in     in     in      in     in     in
paired-elsewhere  code   code    code   code   code   code    code   words  code
stranger          code   code    code   code   code   code    code   words  code
denied            -      -       -      -      -      -       -      -      -
denied-paired     -      -       -      -      -      -       -      -      -
"""
PAIRING_ROOM = """
                  text   command voice  file   edit   forward quote  press  stop   chatter
allowed-dm        words  words   words  words  words  words   words  words  words  -
allowed-member    in     in      in     in     in     in      in     in     in     -
allowed-elsewhere words  words   words  words  words  words   words  words  words  -
paired            words  words   words  words  words  words   words  words  words  -
paired-elsewhere  words  words   words  words  words  words   words  words  words  -
stranger          words  words   words  words  words  words   words  words  words  -
denied            -      -       -      -      -      -       -      -      -      -
denied-paired     -      -       -      -      -      -       -      -      -      -
"""
LIST_PRIVATE = """
                  text   command voice  file   edit   forward quote  press  stop
allowed-dm        in     in      in     in     in     in      in     in     in
allowed-member    words  words   words  words  words  words   words  words  words
allowed-elsewhere words  words   words  words  words  words   words  words  words
paired            words  words   words  words  words  words   words  words  words
paired-elsewhere  words  words   words  words  words  words   words  words  words
stranger          words  words   words  words  words  words   words  words  words
denied            -      -       -      -      -      -       -      -      -
denied-paired     -      -       -      -      -      -       -      -      -
"""
LIST_ROOM = PAIRING_ROOM
OPEN_PRIVATE = """
                  text   command voice  file   edit   forward quote  press  stop
allowed-dm        in     in      in     in     in     in      in     in     in
allowed-member    in     in      in     in     in     in      in     in     in
allowed-elsewhere in     in      in     in     in     in      in     in     in
paired            in     in      in     in     in     in      in     in     in
paired-elsewhere  in     in      in     in     in     in      in     in     in
stranger          in     in      in     in     in     in      in     in     in
denied            -      -       -      -      -      -       -      -      -
denied-paired     -      -       -      -      -      -       -      -      -
"""
OPEN_ROOM = """
                  text   command voice  file   edit   forward quote  press  stop   chatter
allowed-dm        in     in      in     in     in     in      in     in     in     -
allowed-member    in     in      in     in     in     in      in     in     in     -
allowed-elsewhere in     in      in     in     in     in      in     in     in     -
paired            in     in      in     in     in     in      in     in     in     -
paired-elsewhere  in     in      in     in     in     in      in     in     in     -
stranger          in     in      in     in     in     in      in     in     in     -
denied            -      -       -      -      -      -       -      -      -      -
denied-paired     -      -       -      -      -      -       -      -      -      -
"""
OWNER_ALONE = """
                  text   command voice  file   edit   forward quote  press  stop
owner             in     in      in     in     in     in      in     in     in
allowed-dm        words  words   words  words  words  words   words  words  words
allowed-member    words  words   words  words  words  words   words  words  words
allowed-elsewhere words  words   words  words  words  words   words  words  words
paired            words  words   words  words  words  words   words  words  words
stranger          words  words   words  words  words  words   words  words  words
denied            words  words   words  words  words  words   words  words  words
"""

TABLES = {
    ("pairing", True): PAIRING_PRIVATE,
    ("pairing", False): PAIRING_ROOM,
    ("list", True): LIST_PRIVATE,
    ("list", False): LIST_ROOM,
    ("open", True): OPEN_PRIVATE,
    ("open", False): OPEN_ROOM,
}


def rows(table: str) -> dict[str, dict[str, str]]:
    """Outcome by kind, by sender."""
    head, *lines = table.strip("\n").splitlines()
    kinds = head.split()
    cells = [line.split() for line in lines]
    return {sender: dict(zip(kinds, outcomes, strict=True)) for sender, *outcomes in cells}


_NUMBERS = count()
"""No platform gives two events one id."""


def item(kind: str, channel: str, user: str, *, private: bool, chat: str = "") -> Inbound:
    """What `user` does in their own private chat, or in the room."""
    chat = chat or (f"private-{user}" if private else ROOM)
    thread = ThreadKey(channel=channel, account="main", chat=chat)
    message = InboundMessage(
        message_id="m_1",
        native_id=f"n{next(_NUMBERS)}",
        thread=thread,
        author=Author(id=user, name="Somebody"),
        received_at=0.0,
        text="hello",
        private=private,
    )
    media = MediaRef(channel=channel, handle="h", kind="voice")
    changed: dict[str, InboundMessage] = {
        "text": message,
        "voice": replace(message, text="", voice=media),
        "file": replace(message, attachments=(replace(media, kind="file"),)),
        "edit": replace(message, edited=True),
        "forward": replace(message, forwarded=True),
        "quote": replace(message, quoted="earlier"),
        "chatter": replace(message, addressed=False),
    }
    if kind in changed:
        return changed[kind]
    if kind == "press":
        return ApprovalReply(
            message_id="m_1",
            native_id=f"n{next(_NUMBERS)}",
            received_at=0.0,
            thread=thread,
            author=message.author,
            interaction_id="handle",
            choice="",
            option=0,
            private=private,
        )
    return SessionCommand(
        message_id="m_1",
        native_id=f"n{next(_NUMBERS)}",
        received_at=0.0,
        thread=thread,
        author=message.author,
        name="stop" if kind == "stop" else "new",
        private=private,
    )


async def policy(channel: str, mode: AccessMode) -> AccessPolicy:
    """A policy on a separate store, where everybody whom the tables name is known as they say."""
    store, clock = MemoryStore(), ManualClock()
    await store.open()
    here = AccessRule.of(
        mode=mode,
        allow=(
            "dm:allowed-dm",
            f"room:{ROOM}/allowed-member",
            f"room:{OTHER_ROOM}/allowed-elsewhere",
            "dm:denied",
            f"room:{ROOM}/denied",
            f"room:{ROOM}/denied-paired",
        ),
        deny=("denied", "denied-paired"),
    )
    elsewhere = AccessRule.of(mode=mode, allow=("dm:allowed-elsewhere", f"room:{ROOM}"))
    for number, (account, chat, user) in enumerate(
        (
            ("main", "private-paired", "paired"),
            ("main", "private-denied-paired", "denied-paired"),
            ("other", "private-paired-elsewhere", "paired-elsewhere"),
            ("main", "another-chat", "paired-elsewhere"),
        )
    ):
        place = PairedChat(channel=channel, account=account, chat=chat, user=user)
        asked = PairingRequest(place=place, name="", code_hash=str(number), asked_at=0.0, expires_at=9.0)
        await store.pairings.ask(asked, limit=20, again_after_s=3600)
        assert await store.pairings.pair(str(number), now=0.0)
    others = {(other, "main"): elsewhere for other in POSTING if other != channel}
    rules = {(channel, "main"): here, (channel, "other"): elsewhere, **others}
    return AccessPolicy(book=store.pairings, clock=clock, rules=rules)


def outcome(verdict: Allowed | Denied) -> str:
    """The verdict as the tables write it."""
    if isinstance(verdict, Allowed):
        return "in"
    if not verdict.words:
        return "-"
    return "code" if "parlour pair" in verdict.words else "words"
