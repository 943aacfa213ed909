"""What the Slack channel needs to be told. Values only: the gateway's configuration fills them in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from adapters.channel import RateLimits

CHANNEL = "slack"
WEB_API = "https://slack.com/api/"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings:
    """One Slack app in one workspace. The secrets are asked anew for every call and connection."""

    bot_token: Callable[[], str]
    """`xoxb-…`."""
    app_token: Callable[[], str] | None = None
    """`xapp-…` with the scope connections:write; Socket Mode needs it."""
    signing_secret: Callable[[], str] | None = None
    """Signed HTTP needs it."""
    mode: Literal["socket", "http"] = "socket"
    account: str = "main"
    api_base: str | None = None
    """The Web API's address, for a proxy or another cloud of Slack; None is slack.com."""
    rates: RateLimits | None = None
    """None: what Slack documents, see `adapter.RATES`."""
    previews: bool = True
    streams: bool = True
    """Previews in threads by Slack's chat streams; where those are refused, by edits."""
    ping_s: float = 5.0
    """Seconds between two signs of life asked of a socket; one that is silent for three is replaced."""

    @property
    def api_url(self) -> str:
        """The Web API's address with a slash at its end."""
        base = self.api_base or WEB_API
        return base if base.endswith("/") else f"{base}/"

    @property
    def path(self) -> str:
        """Where Slack calls in the mode http: events, interactivity and commands alike."""
        return "/slack/events" if self.account == "main" else f"/slack/{self.account}/events"
