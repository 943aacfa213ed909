"""What every channel shows: each answer once and whole, in its own pace, errors in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import get_args

import pytest

from adapters.channel import ChannelCapabilities, Outgoing, PostingChannel
from adapters.files import FilePostingChannel, OutgoingFile
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS
from gateway.delivery.poster import REPEAT_LABEL
from gateway.ingress.answers import _ANSWER_REFUSED, _NOT_OPEN
from parlour.testing.channel_case import ContractCase, ask
from parlour.testing.contract.fixtures import CaseFixtures
from parlour.testing.delivery_harness import Made
from parlour.testing.fakes import every_event
from parlour.testing.posting_case import PostingCase
from pipeline.domain.events import (
    ErrorEvent,
    LlmToken,
    PipelineEvent,
    ResponseComplete,
    TurnStarted,
)
from pipeline.domain.messages import InboundMessage

_DOT = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,"
    b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
ERROR = "The model gave no answer. Try again."
# The gateway's own words: the adapters read in them that a question is over.
CLOSED = (_NOT_OPEN, *(_ANSWER_REFUSED[status] for status in ("unknown", "already_answered", "expired")))


@pytest.mark.asyncio
class ReplyContract(CaseFixtures):
    """Each answer once and whole, in its own pace, errors in words."""

    async def test_every_event_is_taken_without_raising(self, case: ContractCase) -> None:
        item = await case.write("hello")
        sender = case.sender(item)
        events = every_event(item.message_id)
        assert {type(event) for event in events} == set(get_args(PipelineEvent))
        for event in events:
            await sender.send_event(event)
            await case.pass_time(1.2)
        assert await case.answers() != []

    async def test_tokens_and_the_final_event_and_the_reply_are_one_visible_answer(
        self, case: ContractCase
    ) -> None:
        item = await case.write("hello")
        await _stream(case, item, ["The ", "answer"])
        await case.deliver(item, "The answer")
        assert await case.answers() == ["The answer"]

    async def test_an_answer_that_differs_from_its_tokens_takes_their_place(self, case: ContractCase) -> None:
        item = await case.write("hello")
        await _stream(case, item, ["The ", "first draft"], final="The answer")
        await case.deliver(item, "The answer")
        # A terminal cannot take back what it has printed; the answer is below it.
        assert (await case.answers())[-1] == "The answer"
        if isinstance(case.adapter, PostingChannel):
            assert await case.answers() == ["The answer"]

    async def test_a_long_answer_is_whole_and_in_order_whatever_it_is_split_into(
        self, case: ContractCase
    ) -> None:
        capabilities = case.adapter.capabilities
        text = _words(case, parts=2)
        item = await case.write("hello")
        await case.deliver(item, text)
        shown = await case.answers()
        assert " ".join(shown).split() == text.split()
        if isinstance(case.adapter, PostingChannel):
            assert len(shown) > 1
            assert max(_length(one, capabilities) for one in shown) <= capabilities.text_limit
        else:
            assert shown == [text]

    async def test_an_answer_far_too_long_is_whole_all_the_same(self, case: ContractCase) -> None:
        text = _words(case, parts=MAX_PARTS + 1)
        item = await case.write("hello")
        await case.deliver(item, text)
        if not isinstance(case, PostingCase):
            assert await case.answers() == [text]
            return
        shown = case.shown()
        if not case.files:
            _is_cut(case, [one.text for one in shown], text)
            return
        assert len(shown) <= MAX_PARTS
        assert [one.file_name for one in shown if one.file_name] == [FILE_NAME]
        file = case.adapter.render(Outgoing(text=text))[-1].file
        assert file is not None
        assert file.decode().split() == text.split()

    async def test_two_hundred_tokens_cost_a_handful_of_edits_within_the_declared_rate(
        self,
        case: ContractCase,
    ) -> None:
        item = await case.write("hello")
        pieces = [" " if number % 10 == 9 and number < 199 else str(number % 10) for number in range(200)]
        await case.sender(item).send_event(TurnStarted(session_id="s", message_id=item.message_id))
        for number, event in enumerate(_tokens(item, pieces)):
            await case.sender(item).send_event(event)
            if number % 5 == 4:
                await case.pass_time(0.1)
        text = "".join(pieces)
        await case.sender(item).send_event(
            ResponseComplete(session_id="s", message_id=item.message_id, content=text, entry_id=5)
        )
        await case.deliver(item, text)
        assert " ".join(await case.answers()).split() == text.split()
        # A channel that shows has a separate screen: nothing is edited on anybody's server.
        assert isinstance(case, PostingCase) or not case.adapter.capabilities.edit
        if isinstance(case, PostingCase):
            previews = [call for call in case.harness.made if call.kind == "preview"]
            assert (1 <= len(previews) <= 5) if case.adapter.capabilities.streaming else previews == []
            assert len(case.harness.made) <= len(previews) + 2 * len(await case.answers())
            _keeps_its_pace(case.harness.made, case.adapter.capabilities)

    async def test_a_question_is_shown_with_its_answers_and_goes_when_it_is_answered(
        self, case: ContractCase
    ) -> None:
        item = await case.write("remove it")
        question = await ask(case, item, "int_1")
        if not isinstance(case, PostingCase):
            await case.press(question, "allow")
            return
        buttons = [("allow", "deny")] if case.buttons else []
        assert [shown.buttons for shown in case.shown() if shown.buttons] == buttons
        assert "it removes a folder" in " ".join(" ".join(await case.answers()).split())
        if not case.buttons:
            assert "(allow / deny)" in " ".join(await case.answers())
        await case.press(question, "allow")
        await case.platform.until(lambda: not any(shown.buttons for shown in case.shown()))

    @pytest.mark.parametrize("words", CLOSED)
    async def test_the_buttons_of_a_question_that_takes_no_more_answers_go(
        self, case: ContractCase, words: str
    ) -> None:
        item = await case.write("remove it")
        question = await ask(case, item, "int_1")
        case.inbox.refuse, case.inbox.over = words, True
        shown = await case.press(question, "allow")
        assert words in shown or not (shown or case.buttons)
        if isinstance(case, PostingCase):
            await case.platform.until(lambda: not any(shown.buttons for shown in case.shown()))

    async def test_the_buttons_of_somebody_elses_question_stay(self, case: ContractCase) -> None:
        item = await case.write("remove it")
        question = await ask(case, item, "int_1")
        case.inbox.refuse = _ANSWER_REFUSED["not_allowed"]
        shown = await case.press(question, "allow")
        assert "somebody else" in shown or not (shown or case.buttons)
        if isinstance(case, PostingCase):
            # Whatever follows on the way out comes after what the press brought about.
            await case.deliver(item, "It waits.")
            buttons = [("allow", "deny")] if case.buttons else []
            assert [shown.buttons for shown in case.shown() if shown.buttons] == buttons

    async def test_an_error_ends_in_words(self, case: ContractCase) -> None:
        item = await case.write("hello")
        await case.sender(item).send_event(TurnStarted(session_id="s", message_id=item.message_id))
        await case.sender(item).send_event(_tokens(item, ["The beg"])[0])
        await case.pass_time(1.0)
        await case.sender(item).send_event(
            ErrorEvent(
                session_id="s", message_id=item.message_id, code="model", message=ERROR, recoverable=True
            )
        )
        await case.deliver(item, ERROR, role="error")
        assert ERROR in (await case.answers())[-1]

    async def test_a_reply_sent_again_shows_once_where_promised(self, case: ContractCase) -> None:
        item = await case.write("hello")
        if isinstance(case, PostingCase):
            # The platform did it, and did not say so.
            case.misbehave("error_after")
            await case.deliver(item, "The answer")
            shown = [text for text in await case.answers() if "The answer" in text]
            promised = case.adapter.capabilities.resolution != "none"
            assert promised or await _words_of(case) == f"The answer {REPEAT_LABEL.strip()} The answer"
        else:
            await case.deliver(item, "The answer")
            await case.deliver(item, "The answer")
            shown = [text for text in await case.answers() if "The answer" in text]
            promised = case.adapter.capabilities.idempotent_send
        assert len(shown) == 1 or not promised
        assert shown

    async def test_a_limit_is_obeyed_for_as_long_as_the_platform_says(self, case: ContractCase) -> None:
        item = await case.write("hello")
        if not isinstance(case, PostingCase):
            # No one else's server can limit a channel that shows by itself.
            assert case.adapter.capabilities.rates.chat_per_s == 0
            return
        case.misbehave("rate_limit", retry_after_s=7.0)
        row = await case.deliver_row(item, "The answer")
        assert row.state == "sent"
        refused, again = case.harness.made[0], case.harness.made[1]
        assert (refused.failed, again.failed) == (True, False)
        assert again.at - refused.at >= 7.0
        assert await case.answers() == ["The answer"]

    @pytest.mark.parametrize("kind", ["drop", "error_before"])
    async def test_an_answer_survives_a_platform_that_fails_for_a_moment(
        self, case: ContractCase, kind: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        item = await case.write("hello")
        if isinstance(case, PostingCase):
            case.misbehave(kind)
        await case.deliver(item, "The answer")
        words = (await _words_of(case)).removeprefix("… ")
        if isinstance(case.adapter, PostingChannel) and case.adapter.capabilities.resolution == "none":
            words = words.removeprefix(f"{REPEAT_LABEL.strip()} ")
        assert words == "The answer"
        assert [secret for secret in case.secrets if secret in caplog.text] == []

    async def test_files_follow_the_answer_or_lines_with_links_do(self, case: ContractCase) -> None:
        item = await case.write("hello")
        if not isinstance(case, PostingCase):
            # A channel that shows by itself gets the references, and its page or screen asks for the files.
            assert case.adapter.capabilities.file_bytes == 0
            return
        files = (
            OutgoingFile(content=_DOT, name="dot.gif", kind="image", mime="image/gif", caption="A dot"),
            OutgoingFile(content=b"milk\n", name="the list.txt", kind="file", mime="text/plain"),
        )
        row = await case.deliver_row(item, "The answer", files=files)
        assert row.state == "sent"
        shown = case.shown()
        assert shown[0].text == "The answer"
        if case.adapter.capabilities.file_bytes:
            assert isinstance(case.adapter, FilePostingChannel)
            assert [one.file for one in shown] == [b"", *(file.content for file in files)]
            assert "A dot" in shown[1].text
        else:
            # The words of the line too, where they fit into one message.
            words = await _words_of(case)
            assert words.count("https://") == len(files)


async def _words_of(case: ContractCase) -> str:
    """The answers as one text: a channel of single lines shows a label as a line."""
    return " ".join(" ".join(await case.answers()).split())


async def _stream(
    case: ContractCase, item: InboundMessage, pieces: Sequence[str], *, final: str = ""
) -> None:
    """A whole turn of `item` as its events tell it, with time for previews."""
    sender = case.sender(item)
    await sender.send_event(TurnStarted(session_id="s", message_id=item.message_id))
    for event in _tokens(item, pieces):
        await sender.send_event(event)
        await case.pass_time(1.2)
    await sender.send_event(
        ResponseComplete(
            session_id="s", message_id=item.message_id, content=final or "".join(pieces), entry_id=5
        )
    )


def _words(case: ContractCase, *, parts: int) -> str:
    """Prose that a posting channel needs at least so many messages for, an emoji in every fifty words."""
    count = 16
    while True:
        text = " ".join("🙂" if number % 50 == 49 else f"w{number}" for number in range(count))
        if not isinstance(case.adapter, PostingChannel):
            needed = parts if len(text) > 1_000 else 0
        elif (rendered := case.adapter.render(Outgoing(text=text)))[-1].file is not None:
            needed = MAX_PARTS + 1
        elif not case.files and "left out" in rendered[-1].plain:
            needed = parts
        else:
            needed = 0 if parts > MAX_PARTS and not case.files else len(rendered)
        if needed >= parts:
            return text
        count = count * 3 // 2


def _is_cut(case: ContractCase, shown: Sequence[str], text: str) -> None:
    """As many messages as the channel allows, the start of the text in order, and a last one that says so."""
    assert isinstance(case.adapter, PostingChannel)
    assert len(shown) == len(case.adapter.render(Outgoing(text=text)))
    *begin, notice = shown
    words = " ".join(begin).split()
    assert words == text.split()[: len(words)]
    assert 0 < len(words) < len(text.split())
    assert "left out" in notice


def _tokens(item: InboundMessage, pieces: Sequence[str]) -> list[LlmToken]:
    events, offset = [], 0
    for piece in pieces:
        events.append(LlmToken(session_id="s", message_id=item.message_id, text=piece, offset=offset))
        offset += len(piece)
    return events


def _length(text: str, capabilities: ChannelCapabilities) -> int:
    return len(text.encode("utf-16-le")) // 2 if capabilities.text_unit == "utf16" else len(text)


def _keeps_its_pace(made: Sequence[Made], capabilities: ChannelCapabilities) -> None:
    """The calls of one answer are within what the channel declares."""
    rates = capabilities.rates
    previews = [call.at for call in made if call.kind == "preview"]
    assert all(later - earlier >= rates.edit_interval_s - 0.01 for earlier, later in pairwise(previews))
    if rates.chat_per_s:
        for first, begin in enumerate(made):
            for last, end in enumerate(made[first:], start=first):
                allowed = rates.chat_burst + rates.chat_per_s * (end.at - begin.at) + 0.01
                assert last - first + 1 <= allowed, f"{last - first + 1} calls in {end.at - begin.at:g} s"
