"""Find the problems of a chat that the bot writes to by itself, and its thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.config.chat_place import ChatPlace
from gateway.config.problems import Problem, SettingSource
from gateway.config.settings import Settings
from pipeline.domain.ids import ThreadKey

NO_OWNERS: Final[Mapping[str, str]] = {}
_PAIRS: Final = (("channel", "chat"), ("chat", "channel"), ("account", "channel"))


def place_problems(
    path: str,
    settings: Settings,
    place: ChatPlace,
    source_of: Callable[[str], SettingSource],
    owners: Mapping[str, str] = NO_OWNERS,
) -> Iterator[Problem]:
    """The first problem of the chat of the table `path`. `owners` are the channels whose one account needs no
    setting, with that account."""
    for given, missing in _PAIRS:
        if getattr(place, given) is not None and getattr(place, missing) is None:
            what = f"is missing, as {path}.{given} is set{_where(f'{path}.{given}', source_of)}"
            yield Problem(
                path=f"{path}.{missing}", what=what, fix="name the channel and the chat, or neither"
            )
            return
    if place.channel is None or place.channel in owners:
        return
    where = _where(f"{path}.channel", source_of)
    known = [one for one in settings.channels.accounts() if one.settings.active]
    accounts = [one.settings.account for one in known if one.channel == place.channel]
    if not accounts:
        names = ", ".join(dict.fromkeys((*owners, *(one.channel for one in known)))) or "none"
        what = f"{place.channel!a} is no channel that is on and can post{where}; there are: {names}"
        yield Problem(path=f"{path}.channel", what=what, fix="name one of these, or turn it on")
    elif place.account is None and len(accounts) > 1:
        what = f"is missing, as {place.channel} has several accounts{where}"
        yield Problem(path=f"{path}.account", what=what, fix=f"write one of {', '.join(accounts)}")
    elif place.account is not None and place.account not in accounts:
        what = f"{place.account!a} is no account of {place.channel} that is on{where}"
        yield Problem(path=f"{path}.account", what=what, fix=f"write one of {', '.join(accounts)}")


def place_thread(
    settings: Settings, place: ChatPlace, owners: Mapping[str, str] = NO_OWNERS
) -> ThreadKey | None:
    """The chat's thread; None where it is not set. For settings that have no problem."""
    if place.channel is None or place.chat is None:
        return None
    account = owners.get(place.channel) or place.account
    if account is None:
        accounts = settings.channels.accounts()
        account = next(one.settings.account for one in accounts if one.channel == place.channel)
    return ThreadKey(channel=place.channel, account=account, chat=place.chat)


def _where(path: str, source_of: Callable[[str], SettingSource]) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
