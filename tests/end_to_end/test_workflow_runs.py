"""/run runs a workflow for one message beside the conversation; /runs lists the runs and stops one.

Covers: gateway/turns/run_command.py, gateway/turns/runs_command.py, gateway/turns/workflow_runs.py,
gateway/ingress/stops.py, gateway/agents/workflow_facts.py.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adapters.identity import derived_message_id
from gateway.cli.main import main
from gateway.storage.inbox_items import run_handle
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, ErrorEvent, StepStarted
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, SessionCommand, parse_command
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.all_platforms import open_all_platforms
from tests.support.file_talk import sending, share
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.platform_acts import ask, bot_said, press, with_button
from tests.support.posting_channel import MemoryPosts, Message
from tests.support.workflow_child import DRAFT, triage_model
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_LATER = 4e9
"""A Unix time after the present."""
BACK = "I want my money back"
_DESCRIBED = 'agents.triage.description="Sorts what customers write"'
_OFFERED = ('routes.1.agent="default"', 'routes.1.also=["triage"]')
RUN_TRIAGE = ('agents.triage.graph="examples/workflows/triage.workflow.json"', _DESCRIBED, *_OFFERED)


def _offer(folder: Path, found: dict[str, Any]) -> tuple[str, ...]:
    """Settings with the workflow of a document under the name triage."""
    path = folder / "own.json"
    path.write_text(json.dumps(found), "utf-8")
    return (f'agents.triage.graph="{path}"', *_OFFERED)


def _said(posts: MemoryPosts, chat: str, words: str) -> bool:
    return any(words in text for text in posts.texts(chat))


async def _ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def _paused(harness: GatewayHarness, text: str = f"/run triage {BACK}") -> tuple[str, str]:
    """Begin a run that asks; the message that began it, and its question."""
    accepted = await harness.channel.say(text)
    await harness.channel.reply(accepted.message_id)
    asked = [
        one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
    ]
    return accepted.message_id, asked[-1].interaction_id


async def test_a_run_is_asked_and_answered_while_the_chat_continues_with_its_own_agent(
    tmp_path: Path,
) -> None:
    llm = triage_model("refund", DRAFT, "I am your assistant.", "I still am.")
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=llm) as harness:
        _, question = await _paused(harness)
        # A paused run does not block the chat, whose agent knows nothing of it.
        assert await _ask(harness, "Who are you?") == "I am your assistant."
        assert [message.content for message in llm.requests[-1].messages[1:]] == ["Who are you?"]
        await harness.channel.bring(answer_to(question, "approve"))
        assert (await harness.channel.reply("m_answer")).text == DRAFT
        assert await _ask(harness, "And now?") == "I still am."
        said = [message.content for message in llm.requests[-1].messages[1:]]
        assert said == ["Who are you?", "I am your assistant.", "And now?"]
        assert "`default` (answers now)" in await _ask(harness, "/agent")


async def test_the_conversation_is_without_the_run_after_a_restart_too(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("question", "From 9 to 18.")) as harness:
        assert await _ask(harness, "/run triage When are you open?") == "From 9 to 18."
        shown = [(record.kind, record.body["text"]) for record in await harness.records("user", "assistant")]
        assert shown == [("user", "When are you open?"), ("assistant", "From 9 to 18.")]
    llm = triage_model("Hello.")
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=llm) as harness:
        assert await _ask(harness, "hi") == "Hello."
        assert [message.content for message in llm.requests[-1].messages[1:]] == ["hi"]
        # The run is no part of the conversation that /undo and /retry change.
        assert "no longer use" in await _ask(harness, "/undo")
        again = await harness.channel.say("/undo", native_id="again")
        assert "no message" in (await harness.channel.reply(again.message_id)).text


async def test_run_alone_lists_the_workflows_with_a_button_for_each(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("question", "From 9.")) as harness:
        accepted = await harness.channel.say("/run")
        listed = (await harness.channel.reply(accepted.message_id)).text
        assert "- `triage`: Sorts what customers write" in listed
        (menu,) = [
            one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
        ]
        assert (menu.command, menu.options) == ("run", ("triage",))
        await harness.channel.bring(answer_to(menu.interaction_id, "triage", name="pressed"))
        assert "Send `/run triage` with your message" in (await harness.channel.reply("m_pressed")).text
        assert "There is no workflow `cook` here." in await _ask(harness, "/run cook a soup")
        assert "/run" in await _ask(harness, "/help")


async def test_a_workflow_with_its_own_first_output_runs_without_a_message(tmp_path: Path) -> None:
    source = document(start(initialInput="Good morning"), agent("a"), routes=[way("start > a")])
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=llm) as harness:
        assert await _ask(harness, "/run triage") == "You said: Good morning"


async def test_only_the_workflows_of_a_chat_can_be_run_there(tmp_path: Path) -> None:
    posts = MemoryPosts()
    settings = (
        RUN_TRIAGE[0],
        'routes.1.agent="default"',
        'routes.1.also=["triage"]',
        'routes.1.person="ann"',
    )
    async with open_gateway(
        tmp_path, *settings, llm=triage_model("question", "From 9."), posts=posts
    ) as harness:
        none = await _ask(harness, "/run triage hello")
        assert none.startswith(
            "There is no workflow `triage` here.\n\nThere is no workflow here that you could"
        )
        assert 'by a route: `also = ["NAME"]`' in none
        assert "/run" not in await _ask(harness, "/help")
        await posts.bring(_command(posts, "ann", "/run triage hello"))
        await posts.until(lambda: _said(posts, "ann", "From 9."))
        assert harness.llm.requests != []


async def test_a_long_message_with_lines_reaches_the_workflow_whole(tmp_path: Path) -> None:
    source = document(start(), agent("a"), routes=[way("start > a")])
    text = "first line\n\n" + "word " * 400 + "end"
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=triage_model("fine")) as harness:
        assert await _ask(harness, f"/run triage {text}") == "fine"
        assert harness.llm.requests[0].messages[-1].content == text


async def test_runs_lists_what_each_run_is_at_and_what_it_waits_for(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "question", "From 9 to 18.")
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=llm) as harness:
        assert await _ask(harness, "/runs") == "No workflow has run in this chat."
        paused, _ = await _paused(harness)
        done = await harness.channel.say("/run triage When are you open?")
        await harness.channel.reply(done.message_id)
        listed = await _ask(harness, "/runs")
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert lines == [
        f"- `{run_handle(done.message_id)}` triage: completed less than a minute ago at `answer`",
        (
            f"- `{run_handle(paused)}` triage: paused for less than a minute at `review`. "
            "It waits for an answer: Shall this go to the customer?"
        ),
    ]


async def test_a_paused_run_is_stopped_for_good(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("refund", DRAFT)) as harness:
        began, question = await _paused(harness)
        handle = run_handle(began)
        stopped = await harness.channel.say(f"/runs stop {handle}")
        assert (
            await harness.channel.reply(stopped.message_id)
        ).text == f"Stopped the run `{handle}` of `triage`."
        closed = [one for one in harness.channel.events_of(began) if isinstance(one, ApprovalResolved)]
        assert [one.interaction_id for one in closed] == [question]
        refused = await harness.channel.bring(answer_to(question, "approve"))
        assert refused.status == "refused"
        assert f"- `{handle}` triage: stopped less than a minute ago at `review`" in await _ask(
            harness, "/runs"
        )
        again = SessionCommand(
            message_id="m_again",
            native_id="again",
            thread=ThreadKey.decode(THREAD),
            author=Author(id="owner"),
            received_at=_LATER,
            name="runs",
            argument=f"stop {handle}",
        )
        await harness.channel.bring(again)
        over = (await harness.channel.reply("m_again")).text
        assert over == f"The run `{handle}` of `triage` has ended already."
        assert "There is no run `abc`" in await _ask(harness, "/runs stop abc")
        assert (
            await _ask(harness, "/runs what")
            == "Say `/runs`, or `/runs stop` and a run as the list names it."
        )
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model()) as harness:
        assert "stopped less than a minute ago" in await _ask(harness, "/runs")


async def test_a_run_in_progress_is_stopped_at_once_and_what_waits_behind_it_is_answered(
    tmp_path: Path,
) -> None:
    routes = [way("start > a"), way("start > b")]
    source = document(start(), agent("a"), agent("b"), routes=routes)
    slow = ScriptedLlm([ScriptedAnswer.of("x", delay_s=300.0)] * 2 + [ScriptedAnswer.of("At your service.")])
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=slow) as harness:
        running = await harness.channel.say("/run triage go")
        waiting = await harness.channel.say("hello")
        await harness.channel.until(lambda: len(slow.requests) == len(routes))
        handle = run_handle(running.message_id)
        stopping = await harness.channel.say(f"/runs stop {handle}")
        ended = await harness.channel.terminal(running.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.code == "stopped"
        assert (await harness.channel.reply(waiting.message_id)).text == "At your service."
        assert (await harness.channel.reply(stopping.message_id)).text.startswith("Stopped the run")
        assert "triage: stopped" in await _ask(harness, "/runs")


async def test_a_run_that_is_stopped_after_its_first_answer_ends_with_its_other_questions(
    tmp_path: Path,
) -> None:
    nodes = (start(), approval("one", prompt="One?"), approval("two", prompt="Two?"), agent("a"))
    source = document(
        *nodes,
        routes=[way("start > one"), way("start > two"), way("one > a", "approve"), way("two > a", "approve")],
    )
    slow = ScriptedLlm([ScriptedAnswer.of("x", delay_s=300.0)])
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=slow) as harness:
        began, _ = await _paused(harness, "/run triage go")
        first, second = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(first.id, "approve", name="first"))
        await harness.channel.until(lambda: slow.requests)
        await harness.channel.say("/stop")
        await harness.channel.terminal("m_first")
        assert f"`{run_handle(began)}` triage: stopped" in await _ask(harness, "/runs")
        # The run is over, and its other question is closed.
        refused = await harness.channel.bring(answer_to(second.id, "approve", name="second"))
        assert (refused.status, refused.over) == ("refused", True)


async def test_in_a_room_only_the_one_who_began_a_run_may_stop_it(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("refund", DRAFT), posts=posts) as harness:
        await posts.bring(_command(posts, "ann", f"/run triage {BACK}", chat="r1"))
        await posts.until(lambda: any(one.buttons == ("approve", "reject") for one in posts.messages))
        thread = posts.thread("r1").encode()
        ((question,),) = [await harness.store.pending_interactions(thread, now=0.0)]
        handle = run_handle(str(question.body["message_id"]))
        await posts.bring(_command(posts, "bob", f"/runs stop {handle}", chat="r1"))
        await posts.until(lambda: _said(posts, "r1", "another person's"))
        assert await harness.store.pending_interactions(thread, now=0.0) != ()
        await posts.bring(_command(posts, "ann", f"/runs stop {handle}", chat="r1"))
        await posts.until(lambda: _said(posts, "r1", f"Stopped the run `{handle}`"))
        assert await harness.store.pending_interactions(thread, now=0.0) == ()
        await posts.until(lambda: not any(one.buttons for one in posts.messages))


async def test_a_run_works_on_every_platform(tmp_path: Path) -> None:
    llm = triage_model(*["refund", DRAFT, "Me."] * 3)
    async with open_all_platforms(tmp_path, *RUN_TRIAGE, llm=llm) as everywhere:
        for platform, chat in everywhere.private():
            await ask(platform, chat, f"/run triage {BACK}", "Shall this go to the customer?")
            before = len(platform.bot_texts(chat))
            await press(platform, chat, "approve")
            await platform.until(lambda: bot_said(platform, chat, before, DRAFT))  # noqa: B023 - used at once
            await ask(platform, chat, "/runs", "triage: completed")
            await ask(platform, chat, "Who are you?", "Me.")
    assert llm.requests[-1].messages[-1].content == "Who are you?"


def _command(posts: MemoryPosts, author: str, text: str, chat: str = "") -> SessionCommand:
    command = parse_command(text)
    assert command is not None
    identity = f"{author}-{len(posts.messages)}-{text}"
    return SessionCommand(
        message_id=derived_message_id(posts.name, posts.account, identity),
        native_id=identity,
        thread=posts.thread(chat or author),
        author=Author(id=author),
        received_at=1_700_000_000.0,
        name=command.name,
        argument=command.argument,
        private=not chat,
    )


async def test_files_that_tools_return_inside_a_workflow_come_with_the_answer(tmp_path: Path) -> None:
    tools = {"groups": ["files"]}
    routes = [way("start > draw"), way("draw > ok"), way("ok > tell", "approve")]
    source = document(start(), agent("draw", tools=tools), approval("ok"), agent("tell"), routes=routes)
    share(tmp_path, "list.txt", b"a list")
    # The document has loaded the group, so the model sends the file at once.
    llm = ScriptedLlm([*sending("list.txt")[1:], ScriptedAnswer.of("All done.")])
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=llm) as harness:
        began, question = await _paused(harness, "/run triage go")
        assert (await harness.channel.reply(began)).files == ()
        await harness.channel.bring(answer_to(question, "approve"))
        reply = await harness.channel.reply("m_answer")
    assert reply.text == "All done."
    assert [(file.name, file.size) for file in reply.files] == [("list.txt", len(b"a list"))]


async def test_the_files_of_a_sub_agent_come_with_the_answer_too(tmp_path: Path) -> None:
    routes = [way("start > boss"), way("boss > helper", "subagent")]
    helper = agent("helper", name="Helper", tools={"groups": ["files"]})
    source = document(start(), agent("boss", tools={"subagents": True}), helper, routes=routes)
    share(tmp_path, "list.txt", b"a list")
    tool = "subagent_helper_helper"
    call = ToolCall(id="s", name=tool, arguments=json.dumps({"message": "send the list"}))
    llm = ScriptedLlm([ScriptedAnswer.calling(call), *sending("list.txt")[1:], ScriptedAnswer.of("Sent.")])
    async with open_gateway(tmp_path, *_offer(tmp_path, source), llm=llm) as harness:
        accepted = await harness.channel.say("/run triage go")
        reply = await harness.channel.reply(accepted.message_id)
        assert tool in [offered.name for offered in llm.requests[0].tools]
    assert (reply.text, [file.name for file in reply.files]) == ("Sent.", ["list.txt"])


async def test_people_read_which_step_a_run_is_at(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("refund", DRAFT)) as harness:
        began, question = await _paused(harness)
        await harness.channel.bring(answer_to(question, "reject"))
        await harness.channel.until(lambda: _steps(harness, "m_answer"))
        assert _steps(harness, began) == ["Sorter", "Writer"]
        assert _steps(harness, "m_answer") == ["Writer"]


async def test_the_steps_change_one_message_on_a_posting_channel(tmp_path: Path) -> None:
    posts, answers = MemoryPosts(), asyncio.Event()
    script = [ScriptedAnswer.of("question"), ScriptedAnswer(chunks=("From 9 to 18.",), gate=answers)]
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=ScriptedLlm(script), posts=posts):
        await posts.bring(_command(posts, "ann", "/run triage When are you open?"))
        # The model waits until the step is shown. A manual clock is no help here: a preview waits from the
        # moment at which its turn begins, which the store's thread delays beyond any advance.
        await posts.until(lambda: any("Step `Clerk`" in _versions(one) for one in posts.messages))
        answers.set()
        await posts.until(lambda: _said(posts, "ann", "From 9 to 18."))
    (answer,) = [message for message in posts.messages if message.thread.chat == "ann"]
    assert answer.text == "From 9 to 18."


def _versions(message: Message) -> str:
    return " ".join((*message.versions, message.text))


def _steps(harness: GatewayHarness, message_id: str) -> list[str]:
    return [one.step for one in harness.channel.events_of(message_id) if isinstance(one, StepStarted)]


async def test_the_triage_example_asks_with_buttons_and_takes_a_spoken_answer_on_telegram(
    tmp_path: Path,
) -> None:
    llm = triage_model("refund", DRAFT, "Shorter.")
    hears = ScriptedTranscriber.always("Reject, too long.")
    async with open_all_platforms(tmp_path, *RUN_TRIAGE, llm=llm, transcriber=hears) as everywhere:
        telegram = everywhere.telegram
        ann = telegram.person("ann")
        chat = telegram.private_chat(ann)
        await ask(telegram, chat, f"/run triage {BACK}", "Shall this go to the customer?")
        shown = with_button(telegram, chat, "approve")
        assert shown is not None
        assert tuple(shown.buttons) == ("approve", "reject")
        before = len(telegram.bot_texts(chat))
        await telegram.speak(chat, ann, b"OggS", mime="audio/ogg")
        await telegram.until(lambda: bot_said(telegram, chat, before, "Shorter."))
        again = [one for one in telegram.visible(chat) if "approve" in one.buttons][-1]
        await telegram.press(chat, ann, again.native_id, "approve")
        await ask(telegram, chat, "/runs", "triage: completed")
    assert "What the reviewer said: too long" in llm.requests[-1].messages[-1].content


async def test_the_operator_lists_the_runs_of_all_chats_beside_the_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_gateway(tmp_path, *RUN_TRIAGE, llm=triage_model("refund", DRAFT, "Hi.")) as harness:
        began, _ = await _paused(harness)
        assert await _ask(harness, "hello") == "Hi."
        settings = [f"--set={one}" for one in (f'data.dir="{tmp_path}"', *RUN_TRIAGE)]
        code = await asyncio.to_thread(main, ["workflow", "runs", *settings])
    (line,) = capsys.readouterr().out.splitlines()
    assert code == 0
    words = line.split("  ")
    assert words[1] == run_handle(began)
    assert words[3:] == [
        THREAD,
        "triage",
        "paused",
        "review",
        f"waits for: Shall this go to the customer? {DRAFT}"[: len("waits for: ") + 80],
    ]
