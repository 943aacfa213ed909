"""Check the posting channels for `parlour doctor`: their credentials, and that strangers are refused.

Each check makes at most two calls to the platform and receives no messages, so it does not disturb a running
gateway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from adapters.channel import CheckableChannel, PostingChannel
from gateway.access.policy import AccessPolicy, Denied
from gateway.app.platforms import access_rule, posting_channels
from gateway.channels.timeline import StoreTimeline
from gateway.config import Settings
from gateway.config.channels import PostingSettings
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    name: str
    good: bool
    words: str


async def channel_findings(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """Yield two findings for each active posting channel: its credentials and its access rule."""
    timeline = StoreTimeline(MemoryStore(), clock)
    sections = settings.channels.posting()
    for built in posting_channels(settings, timeline, clock):
        yield await _credentials(built.adapter)
        yield await _stranger(built.adapter.name, sections[built.adapter.name], clock)


async def _credentials(adapter: PostingChannel) -> Finding:
    name = f"{adapter.name} credentials"
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


async def _stranger(name: str, section: PostingSettings, clock: Clock) -> Finding:
    """Whether an unknown person is refused, by the real access policy."""
    thread = ThreadKey(channel=name, account=section.account, chat="0")
    stranger = InboundMessage(
        message_id="m_doctor",
        native_id="doctor",
        thread=thread,
        author=Author(id="0", name="a stranger"),
        received_at=clock.now(),
        text="hello",
    )
    rules = {(name, section.account): access_rule(section)}
    store = MemoryStore()
    await store.open()
    verdict = await AccessPolicy(book=store.pairings, clock=clock, rules=rules).authorise(stranger)
    if isinstance(verdict, Denied):
        shown = "shown a code for `parlour pair`" if section.access == "pairing" else "shown a refusal"
        return Finding(name=name, good=True, words=f"a stranger is refused, and {shown}")
    words = f"open to everybody, {section.open_messages_per_day} messages a day and person"
    return Finding(name=name, good=section.access == "open", words=words)
