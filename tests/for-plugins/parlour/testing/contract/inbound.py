"""What every channel brings in: people's words once, no one else's, voice notes byte for byte, presses."""

from __future__ import annotations

import pytest

from adapters.channel import PostingChannel
from parlour.testing.channel_case import ContractCase, ask
from parlour.testing.contract.fixtures import CaseFixtures
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import ApprovalReply, InboundMessage, MediaRef, button_handle

AUDIO = b"OggS" + bytes(range(256)) * 40


@pytest.mark.asyncio
class InboundContract(CaseFixtures):
    """People's words once, no one else's, voice notes byte for byte, answers to questions."""

    async def test_a_message_comes_in_with_its_words_and_its_author(self, case: ContractCase) -> None:
        item = await case.write("what time is it?")
        assert item.author.id != ""
        assert item.voice is None
        assert (item.private, item.addressed) == (True, True)
        other = await case.write("and now?")
        assert other.author.id == item.author.id
        assert other.message_id != item.message_id

    async def test_the_words_of_bots_come_to_nothing(self, case: ContractCase) -> None:
        item = await case.write("hello")
        await case.deliver(item, "The answer")
        await case.hear_others()
        await case.write("and now?")
        heard = [one.text for one in case.inbox.offers if isinstance(one, InboundMessage)]
        assert heard == ["hello", "and now?"]

    async def test_what_is_delivered_again_is_the_same_message(self, case: ContractCase) -> None:
        await case.write_twice("hello")
        await case.write("and now?")
        hellos = [one for one in case.inbox.items if isinstance(one, InboundMessage) and one.text == "hello"]
        # A terminal delivers nothing again: what is typed twice was meant twice.
        assert len(hellos) == (1 if case.redelivers else 2)
        if case.redelivers:
            offered = [one.message_id for one in case.inbox.offers if getattr(one, "text", "") == "hello"]
            assert set(offered) == {hellos[0].message_id}

    async def test_nonsense_ends_nothing(self, case: ContractCase) -> None:
        await case.hear_nonsense()
        item = await case.write("hello")
        assert case.adapter.health().state == "up"
        authors = {one.author.id for one in case.inbox.items if isinstance(one, InboundMessage)}
        assert authors == {item.author.id}

    async def test_a_voice_note_comes_in_as_voice_and_is_fetched_byte_for_byte(
        self, case: ContractCase
    ) -> None:
        if not case.adapter.capabilities.voice_in:
            await _brings_no_voice(case)
            return
        item = await case.speak(AUDIO)
        assert item.voice is not None
        assert item.voice.channel == case.adapter.name
        assert item.attachments == ()
        assert await case.adapter.download(item.voice, max_bytes=len(AUDIO)) == AUDIO

    async def test_a_voice_note_over_the_limit_is_refused_in_words(self, case: ContractCase) -> None:
        if not case.adapter.capabilities.voice_in:
            await _brings_no_voice(case)
            return
        item = await case.speak(AUDIO)
        assert item.voice is not None
        with pytest.raises(MediaUnavailable) as refused:
            await case.adapter.download(item.voice, max_bytes=len(AUDIO) - 1)
        assert len(str(refused.value)) > 10
        assert [secret for secret in case.secrets if secret in str(refused.value)] == []

    @pytest.mark.parametrize("addressed", [True, False])
    async def test_a_message_in_a_room_says_so_and_whether_it_speaks_to_the_bot(
        self, case: ContractCase, addressed: bool
    ) -> None:
        private = await case.write("hello")
        item = await case.write("is it late?", room=True, addressed=addressed)
        # Where there are no rooms, everything is said to the bot alone.
        assert item.private is not case.rooms
        assert item.addressed is (addressed or not case.rooms)
        assert (item.thread.chat != private.thread.chat) is case.rooms

    async def test_a_press_comes_back_as_the_answer_to_its_question(self, case: ContractCase) -> None:
        item = await case.write("remove it")
        question = await ask(case, item, "int_1")
        await case.press(question, "deny")
        if not case.buttons:
            typed = await case.inbox.message("deny")
            assert (typed.thread, typed.author.id, typed.addressed) == (item.thread, item.author.id, True)
            return
        await case.inbox.until(lambda: isinstance(case.inbox.offers[-1], ApprovalReply))
        answer = case.inbox.offers[-1]
        assert isinstance(answer, ApprovalReply)
        assert (answer.thread, answer.author.id) == (item.thread, item.author.id)
        if isinstance(case.adapter, PostingChannel):
            assert (answer.interaction_id, answer.option, answer.choice) == (button_handle("int_1"), 1, "")
        else:
            assert (answer.interaction_id, answer.option, answer.choice) == ("int_1", None, "deny")

    async def test_two_questions_are_distinguished(self, case: ContractCase) -> None:
        item = await case.write("remove them")
        first = await ask(case, item, "int_1")
        await case.press(first, "allow")
        second = await ask(case, item, "int_2")
        await case.press(second, "allow")
        if not case.buttons:
            # The gateway tells them apart by the words.
            typed = [one for one in case.inbox.offers if getattr(one, "text", "") == "allow"]
            assert len({one.message_id for one in typed}) == 2
            return

        def pressed() -> list[str]:
            return [one.interaction_id for one in case.inbox.offers if isinstance(one, ApprovalReply)]

        await case.inbox.until(lambda: len(pressed()) == 2)
        expected = ["int_1", "int_2"]
        if isinstance(case.adapter, PostingChannel):
            expected = [button_handle(one) for one in expected]
        assert pressed() == expected

    async def test_a_press_on_an_answered_question_is_answered_in_words(self, case: ContractCase) -> None:
        item = await case.write("remove it")
        question = await ask(case, item, "int_1")
        case.inbox.refuse = "This question has already been answered."
        shown = await case.press(question, "allow")
        # A refused message is answered by the gateway, not by the channel.
        assert "already been answered" in shown or not (shown or case.buttons)


async def _brings_no_voice(case: ContractCase) -> None:
    """A channel without voice notes says so, and has none to download."""
    item = await case.write("hello")
    assert item.voice is None
    with pytest.raises(MediaUnavailable):
        await case.adapter.download(
            MediaRef(channel=case.adapter.name, handle="voice", kind="voice"), max_bytes=10
        )
