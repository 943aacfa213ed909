"""What the Slack app may do: the scopes of its bot token, compared with those that features need.

Not here: the app-level token, whose scope `startup.socket_url` proves by using it. Slack's API does not say
which events the app subscribes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from adapters.permissions import ChannelUse, PermissionGap
from adapters.slack.calls import Calls

_DIRECT: Mapping[str, str] = MappingProxyType(
    {
        "chat:write": "the bot cannot answer",
        "im:history": "messages in direct chats do not arrive",
        "commands": "/parlour does not exist",
        "files:read": "voice notes cannot be heard",
        "files:write": "long answers, files and voice replies cannot be sent",
    }
)
"""The scopes that every bot needs, with what does not work without them."""
_ROOMS: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "mentions in channels do not arrive",
        "channels:history": "messages in public channels do not arrive",
        "groups:history": "messages in private channels do not arrive",
        "mpim:history": "messages in group chats do not arrive",
    }
)
"""The scopes that rooms need."""
_EXTRA: Mapping[str, str] = MappingProxyType(
    {
        "reactions:read": "thumbs on answers and ticks on questions do not arrive",
        "reactions:write": "direct chats do not show that it is at work",
        "users:read": "the model gets ids in place of people's names",
    }
)
"""The scopes without which something is less comfortable."""
_FIX = (
    "add it under Bot Token Scopes on the app's page OAuth & Permissions, then press Reinstall to Workspace "
    "there"
)


async def permission_gaps(calls: Calls, use: ChannelUse, *, http: bool) -> tuple[PermissionGap, ...]:
    """The missing scopes. One call. Raises CallFailed. `http`: the app receives by signed HTTP."""
    granted = await calls.scopes()
    if granted is None:
        return ()
    needed = dict(_DIRECT) if use.rooms == "never" else {**_DIRECT, **_ROOMS}
    extra = dict(_EXTRA)
    if http:
        needed["users:read"] = f"{extra.pop('users:read')}, and the app's own id is not known"
    return tuple(
        PermissionGap(
            missing=f"the scope {scope} is missing", effect=effect, fix=_FIX, needed=scope in needed
        )
        for scope, effect in {**needed, **extra}.items()
        if scope not in granted
    )
