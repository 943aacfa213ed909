"""Tool groups that an earlier process loaded: listed again before the model is asked."""

from __future__ import annotations

from pipeline.domain.chat import ToolCall
from pipeline.runtime.scope import TurnScope
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput
from tests.support.contexts import scope
from tests.support.tool_gate import gate, group, tool


async def _never(*_: object) -> ToolOutput:
    raise AssertionError("nothing is called here")


class _Elsewhere:
    """A group on a server: its tools are known once they have been listed. `listed` counts that."""

    name, description = "far", "tools elsewhere"

    def __init__(self, failure: Exception | None = None) -> None:
        self.listed = 0
        self._failure = failure

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        self.listed += 1
        if self._failure is not None:
            raise self._failure
        return (tool("reach", _never),)

    async def close(self) -> None:
        return None


async def test_a_group_that_an_earlier_process_loaded_is_listed_before_its_tools_are_offered() -> None:
    far = _Elsewhere()
    one = gate(far)
    for _ in range(2):
        await one.prepare(("far",), scope())
        assert [offer.name for offer in one.offered(("far",), scope())] == ["load_tools", "reach"]
    assert far.listed == 1


async def test_a_group_that_cannot_be_listed_again_is_left_out() -> None:
    one = gate(_Elsewhere(ToolFailed("it is away")), group(tool("look", _never), name="near"))
    await one.prepare(("far", "near"), scope())
    assert [offer.name for offer in one.offered(("far", "near"), scope())] == ["load_tools", "look"]


async def test_a_tool_whose_name_another_group_has_is_named_as_not_usable() -> None:
    one = gate(group(tool("look", _never), name="near"), group(tool("look", _never), name="far"))
    call = ToolCall(id="l", name="load_tools", arguments='{"groups": ["far"]}')
    reported = await one.propose(call, (), scope())
    assert reported.content == "far: loaded no tools\nfar: not usable: look (another tool has this name)"
