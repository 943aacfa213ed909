"""A question of a paused run that no one answers: the run continues at its time, and the person sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.channel import Acceptance
from gateway.access.policy import AccessRule
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import EXPIRED, ApprovalResolved, ErrorEvent
from tests.support.channel import MemoryChannel
from tests.support.gate_graph import PROMPT, Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

pytestmark = pytest.mark.usefixtures("days_pass_quickly")

NOT_ANSWERED = (
    f"> {PROMPT}\n\n"
    "This was not answered in time, so I did not continue. Send your message again if you still want it."
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


async def _asked(harness: GatewayHarness, text: str = "pay") -> str:
    """A message whose run has asked; the question's id."""
    accepted = await harness.channel.say(text)
    await harness.channel.reply(accepted.message_id)
    return (await harness.store.pending_interactions(THREAD, now=0.0))[-1].id


async def _late(harness: GatewayHarness, question: str) -> Acceptance:
    return await harness.channel.bring(answer_to(question, "approve", name="late"))


async def test_a_run_whose_question_expires_ends_in_words_without_another_message(
    tmp_path: Path, ledger: Ledger
) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    graph = gate_graph(ledger, expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel) as harness:
        question = await _asked(harness)
        await clock.advance(60.1)
        await channel.until(lambda: len(channel.sent) == 2)

        expiry = channel.sent[-1].message_id
        assert (channel.sent[-1].role, channel.sent[-1].text) == ("error", NOT_ANSWERED)
        events = channel.events_of(expiry)
        resolved = next(event for event in events if isinstance(event, ApprovalResolved))
        assert (resolved.interaction_id, resolved.choice) == (question, EXPIRED)
        assert isinstance(events[-1], ErrorEvent)
        assert events[-1].code == "gate_expired"
        refused = await _late(harness, question)
        assert (refused.status, refused.reason) == ("refused", "This question has expired; nothing was done.")
        # Nothing is put into the person's mouth.
        assert [record.body["text"] for record in await harness.records("user")] == ["pay"]
    assert ledger.lines() == ["prepare", "ask"]


async def test_the_edge_behind_a_failure_is_followed_when_a_question_expires(
    tmp_path: Path, ledger: Ledger
) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    graph = gate_graph(ledger, expires_s=60, rescued=True)
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel) as harness:
        await _asked(harness)
        await clock.advance(60.1)
        await channel.until(lambda: len(channel.sent) == 2)
        assert (channel.sent[-1].role, channel.sent[-1].text) == ("assistant", "pay: not paid")
    assert ledger.lines() == ["prepare", "ask", "rescue"]


async def test_a_question_that_expires_while_the_gateway_is_away_is_closed_at_the_start(
    tmp_path: Path, ledger: Ledger
) -> None:
    clock, graph = ManualClock(), gate_graph(ledger, expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock) as harness:
        await _asked(harness)
    await clock.advance(3_600)
    channel = MemoryChannel()
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel):
        await channel.until(lambda: bool(channel.sent))
        assert channel.sent[-1].text == NOT_ANSWERED
    async with open_gateway(tmp_path, graph=graph, clock=clock) as harness:
        # Once, over any number of starts.
        assert len(await harness.records("error")) == 1


async def test_a_question_that_is_asked_later_and_expires_earlier_is_not_waited_for(
    tmp_path: Path, ledger: Ledger
) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    graph = gate_graph(ledger, expires_by_text={"slow": 3_600.0, "quick": 30.0})
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel) as harness:
        slow = await _asked(harness, "slow")
        await _asked(harness, "quick")
        await clock.advance(30.1)
        await channel.until(lambda: len(channel.sent) == 3)
        (left,) = await harness.store.pending_interactions(THREAD, now=clock.now())
        assert left.id == slow
        await channel.bring(answer_to(slow, "approve"))
        assert (await channel.reply("m_answer")).text.startswith("slow: approve")


async def test_an_answer_in_time_is_the_only_ending(tmp_path: Path, ledger: Ledger) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    graph = gate_graph(ledger, expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel) as harness:
        question = await _asked(harness)
        await channel.bring(answer_to(question, "approve"))
        await channel.reply("m_answer")
        await clock.advance(3_600)
        assert await harness.store.expiries.next_due("gate") is None
        assert await harness.records("error") == []
    assert ledger.lines() == ["prepare", "ask", "act approve"]


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("Pay?", "Pay?\n(y / n)\n\nNo one answered in time."),
        # With the line it would not fit into one message: the words stay, and the buttons go.
        (PROMPT, f"{PROMPT}\n(y / n)"),
    ],
)
async def test_the_message_of_an_expired_question_loses_its_buttons_and_says_so(
    tmp_path: Path, ledger: Ledger, prompt: str, shown: str
) -> None:
    clock, posts = ManualClock(), MemoryPosts()
    graph = gate_graph(ledger, expires_s=60, prompt=prompt, options=("y", "n"))
    async with open_gateway(tmp_path, graph=graph, clock=clock, posts=posts):
        await posts.receive("pay", native_id="1")
        await posts.until(lambda: [one.buttons for one in posts.messages] == [("y", "n")])
        await clock.advance(60.1)
        reported = NOT_ANSWERED.replace(PROMPT, prompt)
        await posts.until(lambda: "".join(posts.texts()[1:]) == reported and not posts.messages[0].buttons)
        assert posts.texts()[0] == shown


class _ClosesLater(SqliteStore):
    """Cannot close a question at the first attempt, as if the process died after the entry was accepted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous="NORMAL")
        self.failures = 1
        self._close_expired = self.expiries.close
        self.expiries.close = self._close  # type: ignore[method-assign] # the first call fails

    async def _close(self, interaction_id: str, *, at: float) -> bool:
        if self.failures:
            self.failures -= 1
            raise StorageError("the disk is full")
        return await self._close_expired(interaction_id, at=at)


async def test_a_question_that_is_handed_over_twice_ends_once(tmp_path: Path, ledger: Ledger) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    store, graph = _ClosesLater(tmp_path / "parlour.sqlite3"), gate_graph(ledger, expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock, channel=channel, store=store) as harness:
        await _asked(harness)
        await clock.advance(60.1)
        await channel.until(lambda: len(channel.sent) == 2)
        await clock.advance(5.1)
        while await store.expiries.next_due("gate") is not None:
            await clock.advance(1)
        assert store.failures == 0
        assert (await store.counts()).inbox_open == 0
        assert len(await harness.records("error")) == 1


async def test_no_one_is_informed_of_an_expired_question_after_they_were_shut_out(
    tmp_path: Path, ledger: Ledger
) -> None:
    clock, posts, graph = ManualClock(), MemoryPosts(), gate_graph(ledger, expires_s=60)
    async with open_gateway(tmp_path, graph=graph, clock=clock, posts=posts):
        await posts.receive("pay", native_id="1")
        await posts.until(lambda: len(posts.texts()) == 1)
    await clock.advance(61)
    later = MemoryPosts()
    shut = AccessRule.of(mode="open", deny=("ann",))
    async with open_gateway(tmp_path, graph=graph, clock=clock, posts=later, rule=shut) as harness:
        while await harness.store.expiries.next_due("gate") is not None:
            await clock.advance(1)
        assert (await harness.store.counts()).inbox_open == 0
        assert later.texts() == []
