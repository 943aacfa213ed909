"""The work of the graph bench for both engines: its cases, the nodes' work, and the expected states.

Plain functions over plain data, and the standard library only: the peer's process has none of our packages.
Both sides wrap these very functions as nodes, so the work is the same and only the engine differs; where the
peer keeps message objects, its nodes make them of the same texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bench import workflow_work

Graph = Literal[
    "turn",
    "turn-dicts",
    "held",
    "held-dicts",
    "loop",
    "fanout",
    "safety8",
    "triage",
    "triage-quiet",
    "triage-model",
    "triage-plain",
    "line",
    "line-model",
    "line-plain",
]
Store = Literal["none", "memory", "sqlite", "sqlite-normal", "sqlite-exit", "sqlite-blocking", "sqlite-cold"]

LOOP_STEPS = 40
BRANCHES = 10
MODES = ("supportive", "reflective", "clarifying", "psychoeducation", "guided_exercise", "closing")
CRISIS = "crisis"

_USER_CHARS = 80
_ASSISTANT_CHARS = 200
_TEXTS = {
    "supportive": "I had a rough day and want to talk about it",
    "reflective": "again the same pattern with my sister",
    "clarifying": "I do not know what this is",
    "psychoeducation": "why do I react like this",
    "guided_exercise": "give me a breathing exercise",
    "closing": "thanks, I should go",
    CRISIS: "I want to hurt myself",
}
_CUES = {
    "pattern": "reflective",
    "what this is": "clarifying",
    "why do I": "psychoeducation",
    "exercise": "guided_exercise",
    "should go": "closing",
}
_SCRIPT = (*MODES, CRISIS, "supportive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing to measure on one side."""

    graph: Graph
    """`held` is the turn with a second node that waits. LangGraph keeps LangChain's messages in both; with
    `-dicts`, which it alone has, plain dicts. `triage` and `line` are workflows; LangGraph's nodes call
    prebuilt agents, with `-model` the chat model alone, with `-plain` a function; with `-quiet` it
    sends no events and keeps no log."""
    store: Store = "none"
    """`sqlite` waits for the disk at each commit, `sqlite-normal` does not (SQLite's `synchronous`).
    LangGraph only: `sqlite-exit` writes at the end of a run alone, `sqlite-blocking` is its saver without
    asyncio. Ours only: `sqlite-cold` rebuilds the thread from its log before every turn."""
    history: int = 0
    """Messages in the thread before the turn; an even number."""
    at_once: int = 1
    """How many threads take their turns at the same time."""

    def plain(self) -> dict[str, Any]:
        """For the line of JSON that asks a worker for it."""
        return asdict(self)


def seed(thread: str, count: int) -> list[dict[str, str]]:
    """`count` messages of a thread, user and assistant in alternation, no two alike."""
    return [
        _message("assistant", f"{thread} {number}", _ASSISTANT_CHARS)
        if number % 2
        else _message("user", f"{thread} {number}", _USER_CHARS)
        for number in range(count)
    ]


def inputs(case: Case, thread: str, number: int) -> dict[str, Any]:
    """What the run of `number` in `thread` begins with."""
    match case.graph:
        case "loop":
            return {"n": 0}
        case "fanout":
            return {"text": thread}
        case "safety8":
            return {"text": _TEXTS[_SCRIPT[number % len(_SCRIPT)]]}
        case _:
            return {"text": f"{thread} {number}".ljust(_USER_CHARS, "x")}


def check_state(case: Case, number: int, state: Mapping[str, Any]) -> None:
    """Raise RuntimeError unless `state` is what the run of `number` has to end with."""
    found: object
    expected: object
    match case.graph:
        case "loop":
            found, expected = state["n"], LOOP_STEPS
        case "fanout":
            found, expected = (sorted(state["out"]), state["total"]), (list(range(BRANCHES)), BRANCHES)
        case "safety8":
            found, expected = _safety_result(state), _safety_expected(case, number)
        case (
            "triage" | "triage-quiet" | "triage-model" | "triage-plain" | "line" | "line-model" | "line-plain"
        ):
            found, expected = state["answer"], workflow_work.expected(case.graph.partition("-")[0])
        case _:
            messages = state["messages"] if "messages" in state else state["history"]
            found, expected = len(messages), case.history + 2
    if found != expected:
        raise RuntimeError(f"{case}: the run ended with {found}, not with {expected}")


# -- the two-node turn ----------------------------------------------------------------------------
def ask(state: Mapping[str, Any]) -> dict[str, Any]:
    """Take the user's words into the history."""
    return {"history": [{"role": "user", "content": state["text"]}]}


def answer(state: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the newest message of the history."""
    return {"history": [{"role": "assistant", "content": answer_to(state["history"][-1]["content"])}]}


def answer_to(text: str) -> str:
    """The words of the answer."""
    return text[:20].ljust(_ASSISTANT_CHARS, "x")


# -- the loop -------------------------------------------------------------------------------------
def count(state: Mapping[str, Any]) -> dict[str, Any]:
    """One step of the loop."""
    return {"n": state["n"] + 1}


def enough(state: Mapping[str, Any]) -> bool:
    """Whether the loop is over."""
    return bool(state["n"] >= LOOP_STEPS)


# -- the fan-out ----------------------------------------------------------------------------------
def spread(_state: Mapping[str, Any]) -> dict[str, Any]:
    """The node before the branches."""
    return {}


def branch(number: int) -> dict[str, Any]:
    """One of the branches."""
    return {"out": [number]}


def join(state: Mapping[str, Any]) -> dict[str, Any]:
    """The node where the branches meet."""
    return {"total": len(state["out"])}


# -- the safety-first graph: eight nodes, one of them a subgraph of seven ---------------------------
def crisis_gate(state: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Look for danger before anything else is read; the update, and the node to jump to."""
    crisis = "hurt myself" in state["text"]
    update = {"crisis": crisis, "diagnostics": {"crisis_gate_ms": 0.1}}
    return update, "crisis_response" if crisis else "load_memory"


def crisis_response(_state: Mapping[str, Any]) -> dict[str, Any]:
    """Say where help is."""
    return {"mode": CRISIS, "response": "crisis: " + "h" * 100, "diagnostics": {"crisis_response_ms": 0.1}}


def crisis_log(_state: Mapping[str, Any]) -> dict[str, Any]:
    """Write a record for the audit."""
    return {"diagnostics": {"crisis_log_ms": 0.1}}


def load_memory(state: Mapping[str, Any]) -> dict[str, Any]:
    """Fetch what is known."""
    entry = {"type": "semantic", "text": state["text"][:10]}
    return {"memory": [entry], "diagnostics": {"load_memory_ms": 0.1}}


def dispatcher(state: Mapping[str, Any]) -> dict[str, Any]:
    """Choose one of the modes by its cue."""
    for cue, mode in _CUES.items():
        if cue in state["text"]:
            return {"mode": mode}
    return {"mode": "supportive"}


def chosen_mode(state: Mapping[str, Any]) -> str:
    """The node that the dispatcher has chosen."""
    return str(state["mode"])


def respond(mode: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in one mode."""
    return {"response": f"{mode}: {state['memory'][0]['text']}".ljust(100, "r")}


def finalize_turn(state: Mapping[str, Any]) -> dict[str, Any]:
    """Take the turn into the history."""
    said = {"role": "user", "content": state["text"]}
    answered = {"role": "assistant", "content": state["response"]}
    return {
        "history": [said, answered],
        "transcript": [answered],
        "diagnostics": {"turn_total_ms": 0.1},
    }


def extract(kind: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Look for something to remember, unless the message is small talk."""
    found = 0 if len(state["text"]) < 20 else 1
    return {"diagnostics": {f"extract_{kind}_ms": 0.1, f"extract_{kind}_found": found}}


def _message(role: str, start: str, chars: int) -> dict[str, str]:
    return {"role": role, "content": start.ljust(chars, "x")}


def _safety_result(state: Mapping[str, Any]) -> Sequence[object]:
    return state["mode"], state["response"].split(":")[0], len(state["history"]), len(state["diagnostics"])


def _safety_expected(case: Case, number: int) -> Sequence[object]:
    mode = _SCRIPT[number % len(_SCRIPT)]
    # Gate, total and two stamps of each extractor; the crisis path adds two, the other one.
    return mode, mode, case.history + 2, 8 if mode == CRISIS else 7
