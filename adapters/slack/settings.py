"""The Slack channel's settings. Values only: the gateway's configuration provides them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from adapters.channel import RateLimits
from pipeline.domain.frozen import dataclass

CHANNEL = "slack"
WEB_API = "https://slack.com/api/"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackOptions:
    """One Slack app in one workspace. The secrets are read for every call and connection."""

    bot_token: Callable[[], str]
    """`xoxb-…`."""
    app_token: Callable[[], str] | None = None
    """`xapp-…` with the scope connections:write; required for Socket Mode."""
    signing_secret: Callable[[], str] | None = None
    """Required for signed HTTP."""
    mode: Literal["socket", "http"] = "socket"
    account: str = "main"
    api_base: str | None = None
    """The Web API's address, for a proxy or another Slack cloud; None is slack.com."""
    rates: RateLimits | None = None
    """None: `rate_limits.DEFAULT_RATES`."""
    previews: bool = True
    reactions: Literal["auto", "none", "taken"] = "auto"
    """On a message that is taken: on all of them, or with `auto` in direct chats in place of typing."""
    streams: bool = True
    """Previews in threads by Slack's chat streams, with edits as the fallback."""
    ping_s: float = 5.0
    """Seconds between two pings on a socket; one that is silent for three of them is replaced."""

    @property
    def api_url(self) -> str:
        """The Web API's address with a slash at its end."""
        base = self.api_base or WEB_API
        return base if base.endswith("/") else f"{base}/"

    @property
    def path(self) -> str:
        """The path that Slack calls in the mode http: events, interactivity and commands alike."""
        return "/slack/events" if self.account == "main" else f"/slack/{self.account}/events"
