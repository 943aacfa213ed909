"""Check the posting channels for `parlour doctor` and `parlour init`: their credentials, what the platform
lets the bot do, and that strangers are refused.

Each check makes a few calls to the platform and receives no messages: a running gateway is not disturbed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from adapters.channel import Channel, CheckableChannel
from adapters.permissions import ChannelUse, PermissionCheckingChannel
from gateway.access.policy import AccessPolicy, Denied
from gateway.app.platforms import access_rule, built_channels
from gateway.channels.registry import key_of
from gateway.channels.timeline import StoreTimeline
from gateway.cli.findings import Finding
from gateway.config import Settings
from gateway.config.channels import ChannelAccount, label_of
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage


async def channel_findings(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """Yield the findings for each active channel on which other people write: its credentials, what the bot
    may not do, and its access rule; and one for each that is left out."""
    timeline = StoreTimeline(MemoryStore(), clock)
    accounts = settings.channels.accounts()
    active = {account.key: account for account in accounts if account.settings.active}
    channels, left_out = built_channels(settings, timeline, clock)
    for one in left_out:
        yield Finding(name=one.label, good=False, words=f"is left out: {one.problem}")
    for built in channels:
        account = active[key_of(built.adapter)]
        label = label_of(account, accounts)
        credentials = await _credentials(label, built.adapter)
        yield credentials
        if credentials.good:
            for finding in await _permissions(label, built.adapter, account):
                yield finding
        yield await _stranger(label, account, clock)


async def _credentials(label: str, adapter: Channel) -> Finding:
    name = f"{label} credentials"
    if not isinstance(adapter, CheckableChannel):
        return Finding(name=name, good=True, words="not checked: the channel offers no check")
    try:
        bot = await adapter.check_credentials()
    except ConfigurationError as error:
        return Finding(name=name, good=False, words=str(error))
    except Exception as error:  # noqa: BLE001 - the adapter classifies any error of an SDK
        failure = adapter.classify(error)
        words = f"the platform gave no usable answer ({failure.message})"
        return Finding(name=name, good=False, words=f"{words}; check the network and try again")
    return Finding(name=name, good=True, words=f"accepted; the bot is {bot}")


async def _permissions(label: str, adapter: Channel, account: ChannelAccount) -> list[Finding]:
    """One finding for each thing that the bot may not do, or one that says that nothing is missing."""
    name = f"{label} permissions"
    if not isinstance(adapter, PermissionCheckingChannel):
        return []
    section = account.settings
    use = ChannelUse(rooms=section.rooms, hear_rooms=section.hear_rooms, room_messages=section.room_messages)
    try:
        gaps = await adapter.permission_gaps(use)
    except ConfigurationError as error:
        return [Finding(name=name, good=False, words=str(error))]
    except Exception as error:  # noqa: BLE001 - as above
        words = f"the platform did not say what the bot may do ({adapter.classify(error).message}); try again"
        return [Finding(name=name, good=False, words=words)]
    if not gaps:
        return [Finding(name=name, good=True, words="all that the bot needs")]
    return [
        Finding(
            name=name, good=not gap.needed, words=gap.words() if gap.needed else f"optional: {gap.words()}"
        )
        for gap in gaps
    ]


async def _stranger(name: str, account: ChannelAccount, clock: Clock) -> Finding:
    """Whether an unknown person is refused, by the real access policy."""
    section = account.settings
    thread = ThreadKey(channel=account.channel, account=section.account, chat="0")
    stranger = InboundMessage(
        message_id="m_doctor",
        native_id="doctor",
        thread=thread,
        author=Author(id="0", name="a stranger"),
        received_at=clock.now(),
        text="hello",
    )
    rules = {account.key: access_rule(section)}
    store = MemoryStore()
    await store.open()
    verdict = await AccessPolicy(book=store.pairings, clock=clock, rules=rules).authorise(stranger)
    if isinstance(verdict, Denied):
        shown = "shown a code for `parlour pair`" if section.access == "pairing" else "shown a refusal"
        return Finding(name=name, good=True, words=f"a stranger is refused, and {shown}")
    words = f"open to everybody, {section.open_messages_per_day} messages a day and person"
    return Finding(name=name, good=section.access == "open", words=words)
