"""The common settings of the channels on which other people write.

A plug-in's channel declares its settings as a class derived from `PostingSettings`. Not here: the shipped
channels' tables (`channels`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator

from gateway.config.platform_ids import ANY
from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting
from gateway.config.value_checks import check_account, check_platform_base

Access = Literal["pairing", "list", "open"]
Rooms = Literal["addressed", "may_answer", "all", "never"]
_LISTED = 1_000


def allow_setting(*example: str) -> Any:
    """Declare `allow`, with entries as examples; the type checks them, see `PlatformIds.check_allowed`."""
    return setting(
        (),
        "Who may write independently of access: dm:USER in private, room:CHAT everybody in that room, "
        "room:CHAT/USER one person there; all by the platform's ids.",
        example=example,
        expected=f"a list of up to {_LISTED} of dm:USER, room:CHAT and room:CHAT/USER",
        max_length=_LISTED,
        strict=False,
    )


def deny_setting(*example: str) -> Any:
    """Declare `deny`, with ids as examples; the type checks them, see `PlatformIds.check_person`."""
    return setting(
        (),
        "Who may never write, by the platform's ids of the people; overrides every other setting.",
        example=example,
        expected=f"a list of up to {_LISTED} ids",
        max_length=_LISTED,
        strict=False,
    )


class PostingSettings(Section):
    """[channels.*]: the common settings of the posting channels."""

    SECRETS: ClassVar[tuple[str, ...]] = ()
    """The keys of its secrets, the bot's token first."""
    NEEDED: ClassVar[str] = ""
    """The key without which the channel stays off; empty for that of the bot's token."""

    enabled: bool = setting(
        default=True, description="Whether the channel is on. It starts only if the bot's token is set."
    )
    account: Annotated[str, AfterValidator(check_account)] = setting(
        "main",
        "The name under which the store keeps this bot's conversations. A new name starts without any. Of "
        "several tables of one channel, each needs its own.",
        expected="1 to 32 of the characters a-z, 0-9 and -",
    )
    agent: str | None = setting(
        None,
        "The agent that answers on this account where no route says otherwise: a NAME of [agents.NAME].",
        example="default",
        min_length=1,
        max_length=32,
    )
    api_base: Annotated[str | None, AfterValidator(check_platform_base)] = setting(
        None,
        "The address of the platform's API, when it is not the platform's own.",
        example="http://127.0.0.1:8081",
        expected="an address that starts with http:// or https://",
    )
    access: Access = setting(
        "pairing",
        "Who may write to the bot: with pairing those in allow and those whom the operator lets in by a "
        "code; with list those in allow; with open everybody, within open_messages_per_day and open_people.",
    )
    allow: tuple[Annotated[str, AfterValidator(ANY.check_allowed)], ...] = allow_setting("dm:ann")
    deny: tuple[Annotated[str, AfterValidator(ANY.check_person)], ...] = deny_setting("bob")
    open_messages_per_day: int = setting(
        100, 'With access = "open": how many messages one person may write in a day.', ge=1, le=100_000
    )
    open_people: int = setting(
        200, 'With access = "open": how many different people may write in a day.', ge=1, le=100_000
    )
    rooms: Rooms = setting(
        "addressed",
        "When the bot answers in rooms with several people: when it is addressed; also when it decides that "
        "it can help, within room_checks_per_hour; always; or never.",
    )
    room_checks_per_hour: int = setting(
        30,
        'With rooms = "may_answer": how many messages of one room that are not addressed to the bot it '
        "considers in an hour. Each costs a call of the model.",
        ge=0,
        le=10_000,
    )
    hear_rooms: bool = setting(
        default=False,
        description='With rooms = "addressed": whether voice notes of people who may write to the bot are '
        "transcribed, and answered when they say its name.",
    )
    room_messages: int = setting(
        20,
        "How many of the last messages of a room or thread, other people's included, the model gets when the "
        "bot is addressed there; 0 for none. They are not stored.",
        ge=0,
        le=100,
    )
    rate: float | None = setting(
        None,
        "The most posts and edits in a second over all chats; 0 sets no limit. When absent: the platform's "
        "own limit.",
        example=20,
        ge=0,
        le=1_000,
    )
    previews: bool = setting(
        default=True, description="Whether the answer is shown while it is written; else only when finished."
    )
    reactions: Literal["auto", "none", "taken"] = setting(
        "auto",
        "Whether the bot shows by a reaction on the person's message that it is taken, until the answer is "
        "there, on Telegram, Slack and Discord. auto: only in Slack's direct chats, which have no typing "
        "indicator.",
    )
    show_work: Literal["quiet", "normal", "detailed"] | None = setting(
        None,
        "How much of the work is shown on this channel; when absent: agent.show_work.",
        example="quiet",
    )

    @classmethod
    def needed(cls) -> str:
        """The key of the setting without which the channel stays off."""
        return cls.NEEDED or cls.SECRETS[0]

    @property
    def active(self) -> bool:
        """Whether the channel is to run."""
        return self.enabled and getattr(self, self.needed()) is not None

    def mistakes(self) -> Iterable[tuple[str, str, str]]:
        """The broken rules between settings of this table: the key, what is wrong, and what to do. Each is
        reported at the key's line."""
        return ()

    def secret_refs(self) -> dict[str, SecretRef | None]:
        """The secrets by key; None if it is not set. Those that a class forgot to list are among them."""
        held = {key: getattr(self, key) for key in type(self).model_fields}
        unlisted = {key: value for key, value in held.items() if isinstance(value, SecretRef)}
        return {key: held[key] for key in self.SECRETS} | unlisted
