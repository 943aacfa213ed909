"""A scripted model that calls the tools which a message names, and otherwise echoes."""

from __future__ import annotations

import json
from typing import Any

from pipeline.domain.chat import ToolCall
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm


class ToolEcho(ScriptedLlm):
    """Calls one tool of a group for a message `wish` has made, and answers any other with its words."""

    def _next(self, request: LlmRequest) -> ScriptedAnswer:
        asked = max(at for at, one in enumerate(request.messages) if one.role == "user")
        _, marked, wanted = request.messages[asked].content.partition("CALL ")
        results = [one.content for one in request.messages[asked:] if one.role == "tool"]
        if not marked or len(results) > 1:
            # Without the messages of others in a room, which a model would not repeat.
            return ScriptedAnswer.of(f"You said: {request.messages[asked].content.splitlines()[-1]}")
        group, name, arguments = json.loads(wanted.partition("\n")[0])
        if not results:
            return _calling("load_tools", {"groups": [group]})
        return _calling(name, arguments)


def wish(group: str, name: str, **arguments: Any) -> str:
    """The message that makes the model call the tool."""
    return f"CALL {json.dumps([group, name, arguments])}"


def _calling(name: str, arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=f"c_{name}", name=name, arguments=json.dumps(arguments)))
