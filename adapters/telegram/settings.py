"""The Telegram channel's settings. Values only: the gateway's configuration provides them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

from adapters.channel import RateLimits
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

CHANNEL = "telegram"
PUBLIC_API = "https://api.telegram.org"

_TOKEN = re.compile(r"[0-9]{3,20}:[A-Za-z0-9_-]{20,100}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{32,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramOptions:
    """The Telegram channel's settings. The callables are called at each use."""

    token: Callable[[], str]
    """The bot's token, as @BotFather gave it."""
    account: str = "main"
    api_base: str | None = None
    """Another Bot API server than Telegram's own, for example `http://127.0.0.1:8081`."""
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str | None = None
    """The public address to which Telegram posts; its path is the route's."""
    webhook_secret: Callable[[], str] | None = None
    replies: Literal["post", "edit", "plain"] = "post"
    """`post`: the answer is posted, or replaces its preview; an unconfirmed post is searched for.
    `edit`: a recorded placeholder becomes the answer. `plain`: it is posted, and nothing is edited."""
    previews: bool = True
    """Show the answer while it is being written."""
    acknowledges: bool = False
    """Put a reaction on a message that is taken, until its answer is there."""
    rates: RateLimits | None = None
    poll_s: int = 25
    """Seconds that one poll waits for updates."""

    def __post_init__(self) -> None:
        if self.mode == "webhook":
            if not self.webhook_url or not urlsplit(self.webhook_url).netloc:
                raise ConfigurationError(
                    "channels.telegram.webhook_url: in webhook mode give the public https address that "
                    "Telegram shall post to"
                )
            if self.webhook_secret is None:
                raise ConfigurationError(
                    "channels.telegram.webhook_secret: in webhook mode a secret is needed, or anybody could "
                    "post messages"
                )

    @property
    def server(self) -> str:
        """The Bot API server's address, without a trailing slash."""
        return (self.api_base or PUBLIC_API).rstrip("/")

    @property
    def webhook_path(self) -> str:
        """The path that the gateway's server listens on."""
        return urlsplit(self.webhook_url or "").path or "/"

    def checked_token(self) -> None:
        """Raise ConfigurationError unless the token looks valid. The message never contains it."""
        if not _TOKEN.fullmatch(self.token()):
            raise ConfigurationError(
                "channels.telegram.token does not look like a bot token (digits, a colon, some 35 "
                "characters): copy it again from @BotFather"
            )

    def secret(self) -> str:
        """The webhook's present secret. Raises ConfigurationError where it would not protect."""
        secret = self.webhook_secret() if self.webhook_secret is not None else ""
        if not _SECRET.fullmatch(secret):
            raise ConfigurationError(
                "channels.telegram.webhook_secret must be 32 to 256 of the characters A-Z, a-z, 0-9, "
                "_ and -: make one with openssl rand -hex 32"
            )
        return secret
