"""Read the `config` of each subtype of a playbook's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from pipeline.graph.definition.expressions import Expression, expression_problem
from pipeline.graph.documents.fields import Fields
from pipeline.playbooks.document import (
    DEFAULT_ITERATIONS,
    DEFAULT_SYSTEM_PROMPT,
    TRIGGER_PLACE,
    TRIGGERS,
    Loop,
    Merge,
    Mode,
    Node,
    Parallel,
    PlaybookAgent,
    PlaybookCondition,
    PlaybookToolCall,
    PlaybookWait,
    Response,
    Router,
    Strategy,
    SubWorkflow,
    Transfer,
    Trigger,
    UserInput,
    Way,
)

MAX_TEXT: Final = 50_000
MAX_ROUTES: Final = 20
MAX_OPTIONS: Final = 10
MAX_ITERATIONS: Final = 100
MAX_WAIT_S: Final = 400 * 86_400.0
_UNITS: Final[Mapping[str, float]] = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}

Read = Callable[[str, str, str, Fields], Node]
"""Makes a node of its id, label, subtype and `config`, and notes what is wrong."""


def _trigger(name: str, label: str, subtype: str, _given: Fields) -> Node:
    return Trigger(id=name, label=label, subtype=subtype)


def _agent(name: str, label: str, _subtype: str, given: Fields) -> Node:
    groups: tuple[str, ...] = ()
    tools = given.inner("tools")
    if tools is not None:
        groups = tuple(dict.fromkeys(tools.texts("groups")))
        tools.close()
    system = _long(given, "systemPrompt") or DEFAULT_SYSTEM_PROMPT
    if "{{" in system:
        # Values would speak with the operator's voice there.
        given.note("systemPrompt", "has a place {{…}}; put values into the prompt")
    after, criteria = _long(given, "after"), _long(given, "successCriteria")
    return PlaybookAgent(
        id=name,
        label=label,
        system_prompt=system,
        prompt=_long(given, "prompt") or TRIGGER_PLACE,
        before=_long(given, "before"),
        after=after,
        criteria=criteria,
        groups=groups,
    )


def _tool_call(name: str, label: str, _subtype: str, given: Fields) -> Node:
    arguments = given.raw("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        given.note("arguments", "expected an object")
        arguments = None
    return PlaybookToolCall(
        id=name,
        label=label,
        tool=given.text("tool"),
        group=given.text("group", default=""),
        arguments=arguments or {},
    )


def _router(name: str, label: str, _subtype: str, given: Fields) -> Node:
    routes: list[Way] = []
    for one in given.inner_list("routes"):
        routes.append(Way(label=one.text("label"), description=one.text("description", default="")))
        one.close()
    names = [way.label.strip().lower() for way in routes]
    if not routes:
        given.note("routes", "has no route; add at least one")
    elif len(routes) > MAX_ROUTES or len(set(names)) < len(names):
        given.note("routes", f"must be at most {MAX_ROUTES}, each with another label")
    default = given.text("default", default="")
    if default and default not in [way.label for way in routes]:
        given.note("default", f"{default!r} is not the label of a route")
    return Router(id=name, label=label, prompt=_long(given, "prompt"), routes=tuple(routes), default=default)


def _condition(name: str, label: str, _subtype: str, given: Fields) -> Node:
    mode, holds, prompt = _asked(given, "expression")
    if mode == "template" and holds is None:
        given.note("expression", 'is missing; write one, or "mode": "llm" with a prompt')
    return PlaybookCondition(id=name, label=label, mode=mode, holds=holds, prompt=prompt)


def _loop(name: str, label: str, _subtype: str, given: Fields) -> Node:
    mode, holds, prompt = _asked(given, "condition", "conditionMode")
    times = given.whole("maxIterations", default=DEFAULT_ITERATIONS)
    if not 1 <= times <= MAX_ITERATIONS:
        given.note("maxIterations", f"must be from 1 to {MAX_ITERATIONS}")
    return Loop(id=name, label=label, max_iterations=times, mode=mode, holds=holds, prompt=prompt)


def _asked(given: Fields, field: str, mode_field: str = "mode") -> tuple[Mode, Expression | None, str]:
    """How a node decides: by the expression in a field, or by a question to the model."""
    mode: Mode = given.choice(mode_field, options=get_args(Mode), default="template")
    text, prompt = given.text(field, default=""), _long(given, "prompt")
    problem = expression_problem(text) if text else ""
    if problem:
        given.note(field, problem)
    if mode == "llm" and not prompt.strip():
        given.note("prompt", "is missing; write the question that the model answers with yes or no")
    if mode == "llm" and text:
        given.note(field, f'is not used with "{mode_field}": "llm"; give either it or the prompt')
    if mode == "template" and prompt:
        given.note("prompt", f'is used only with "{mode_field}": "llm"')
    return mode, Expression.parse_or_none(text) if text else None, prompt


def _wait(name: str, label: str, _subtype: str, given: Fields) -> Node:
    amount = given.number("amount", default=0.0)
    seconds = amount * _UNITS[given.choice("unit", options=tuple(_UNITS), default="s")]
    if not 0 < seconds <= MAX_WAIT_S:
        given.note("amount", "must be above 0, and at most 400 days")
        seconds = 1.0
    return PlaybookWait(id=name, label=label, seconds=seconds, message=_long(given, "message"))


def _parallel(name: str, label: str, _subtype: str, _given: Fields) -> Node:
    return Parallel(id=name, label=label)


def _merge(name: str, label: str, _subtype: str, given: Fields) -> Node:
    strategy: Strategy = given.choice("strategy", options=get_args(Strategy), default="wait-all")
    return Merge(id=name, label=label, strategy=strategy)


def _sub_workflow(name: str, label: str, _subtype: str, given: Fields) -> Node:
    return SubWorkflow(
        id=name, label=label, workflow=_file(given), input=_long(given, "input") or TRIGGER_PLACE
    )


def _transfer(name: str, label: str, _subtype: str, given: Fields) -> Node:
    return Transfer(id=name, label=label, workflow=_file(given), input=_long(given, "input") or TRIGGER_PLACE)


def _file(given: Fields) -> str:
    file = given.text("workflow")
    parts = file.split("/")
    if file and (not file.endswith(".json") or "\\" in file or file.startswith("/") or ".." in parts):
        given.note("workflow", "must be a file of this folder or one below it that ends in .json")
    return file


def _user_input(name: str, label: str, _subtype: str, given: Fields) -> Node:
    options = given.texts("options")
    if len(options) > MAX_OPTIONS or len({one.strip().casefold() for one in options}) < len(options):
        given.note("options", f"must be at most {MAX_OPTIONS}, each given once")
    if any(not one.strip() for one in options):
        given.note("options", "has an empty option")
    return UserInput(id=name, label=label, prompt=_long(given, "prompt", required=True), options=options)


def _response(name: str, label: str, _subtype: str, given: Fields) -> Node:
    return Response(id=name, label=label, text=_long(given, "text"))


def _long(given: Fields, field: str, *, required: bool = False) -> str:
    text = given.text(field) if required else given.text(field, default="")
    if len(text) > MAX_TEXT:
        given.note(field, f"is longer than {MAX_TEXT} characters")
    return text


KINDS: Final[Mapping[str, Read]] = {
    **dict.fromkeys(TRIGGERS, _trigger),
    "agent": _agent,
    "tool-call": _tool_call,
    "router": _router,
    "condition": _condition,
    "wait": _wait,
    "loop": _loop,
    "parallel": _parallel,
    "merge": _merge,
    "sub-workflow": _sub_workflow,
    "user-input": _user_input,
    "response": _response,
    "transfer": _transfer,
}
"""The subtypes of nodes."""


def texts_of(node: Node) -> Mapping[str, Any]:
    """The texts of a node in which places are filled in, by their field; arguments are a tree of texts."""
    match node:
        case PlaybookAgent():
            found: dict[str, Any] = {"prompt": node.prompt, "before": node.before, "after": node.after}
            found["successCriteria"] = node.criteria
        case Router() | PlaybookCondition() | Loop() | UserInput():
            found = {"prompt": node.prompt}
        case PlaybookToolCall():
            found = {"arguments": node.arguments}
        case PlaybookWait():
            found = {"message": node.message}
        case SubWorkflow() | Transfer():
            found = {"input": node.input}
        case Response():
            found = {"text": node.text}
        case _:
            found = {}
    return found
