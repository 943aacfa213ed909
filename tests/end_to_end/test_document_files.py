"""Pictures and documents that people send to an agent that runs a graph document.

Covers: pipeline/nodes/model.py, pipeline/agent/task_loop.py.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ToolCall
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.file_reader import PICTURE, SCALED, FakeFileReader
from tests.support.harness import open_gateway
from tests.support.posted_files import message, ref
from tests.support.posting_channel import MemoryPosts

SEEING = 'llm.model="openai/gpt-4o-mini"'
BLIND = 'llm.model="openai/gpt-3.5-turbo"'
PHOTO = ref("p1", "image", "cat.png", "image/png", 20)
REPORT = ref("d1", "file", "report.pdf", "application/pdf", 40)
MEDIA = {"p1": PICTURE + b"a cat", "d1": b"the secret is 7"}


def _node(name: str, run: str, **given: Any) -> dict[str, Any]:
    return {"id": name, "run": run, "with": given}


def _document(*nodes: Mapping[str, Any]) -> dict[str, Any]:
    names = [node["id"] for node in nodes]
    edges = [{"source": one, "target": after} for one, after in itertools.pairwise(names)]
    return {"name": "bot", "version": "1", "entry": names[0], "nodes": list(nodes), "edges": edges}


def _setting(folder: Path, document: Mapping[str, Any], key: str = "agent.graph") -> str:
    path = folder / f"{key}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return f'{key}="{path}"'


def _sets(key: str, value: str) -> ScriptedAnswer:
    arguments = json.dumps({"key": key, "value": value})
    return ScriptedAnswer.calling(ToolCall(id="s", name="set_output", arguments=arguments))


def _seen(request: LlmRequest) -> tuple[bool, list[bytes]]:
    """Whether the model reads the document, and the pictures that it is shown."""
    text = "\n".join(one.content for one in request.messages)
    return "the secret is 7" in text, list(request.pictures.values())


async def _answer(data: Path, *settings: str, llm: ScriptedLlm, answer: str) -> None:
    posts = MemoryPosts()
    posts.media = dict(MEDIA)
    async with open_gateway(data, *settings, posts=posts, llm=llm, file_reader=FakeFileReader()):
        await posts.bring(message(posts, 1, "What is this?", PHOTO, REPORT))
        await posts.until(lambda: "".join(posts.texts()) == answer)


_ASKS = _document(
    _node("sort", "model", prompt="Which kind is it? {message}", output="kind"),
    _node("rule", "model", prompt="What is said to {kind}?", output="rule"),
    _node("write", "model", prompt="{rule}: {message}", answer=True),
)
ALL: tuple[bool, list[bytes]] = (True, [SCALED + b"a cat"])
NONE: tuple[bool, list[bytes]] = (False, [])


async def test_each_question_about_the_message_has_its_files_and_others_have_none(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(one) for one in ("a photo", "Name it.", "A cat, 7.")])
    await _answer(tmp_path, _setting(tmp_path, _ASKS), SEEING, llm=llm, answer="A cat, 7.")
    assert [_seen(request) for request in llm.requests] == [ALL, NONE, ALL]


async def test_a_model_that_cannot_see_reads_the_document_and_the_person_reads_why(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of(one) for one in ("a file", "Read it.", "7.")])
    line = "I left out `cat.png`. This model cannot see pictures."
    await _answer(tmp_path, _setting(tmp_path, _ASKS), BLIND, llm=llm, answer=f"{line}\n\n7.")
    assert _seen(llm.requests[0]) == (True, [])
    assert "[You cannot see pictures. The user knows that.]" in llm.requests[0].messages[-1].content


async def test_steps_that_share_a_conversation_all_see_the_files_of_the_message(tmp_path: Path) -> None:
    work = _document(
        _node("look", "task", instructions="Look at it.", outputs=["what"]),
        _node("say", "task", instructions="Say it.", outputs=["said"], answer="said"),
    )
    llm = ScriptedLlm([_sets("what", "cat"), _sets("said", "A cat.")])
    await _answer(tmp_path, _setting(tmp_path, work), SEEING, llm=llm, answer="A cat.")
    assert [_seen(request) for request in llm.requests] == [ALL] * 2


async def test_a_gate_sees_the_files_of_a_message(tmp_path: Path) -> None:
    gate = _document(
        _node("read", "model", prompt="Is it harmful? {message}", output="verdict"),
        _node("stop", "condition", **{"if": 'verdict == "yes"', "then": "refuse", "else": "end"}),
        _node("refuse", "reply", text="I do not answer that."),
    )
    gate["edges"] = [{"source": "read", "target": "stop"}]
    llm = ScriptedLlm([ScriptedAnswer.of("yes")])
    setting = _setting(tmp_path, gate, "agent.gate")
    await _answer(tmp_path, setting, SEEING, llm=llm, answer="I do not answer that.")
    assert [_seen(request) for request in llm.requests] == [ALL]
