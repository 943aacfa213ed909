"""What an exploration has found, in words and as a mermaid picture."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.graph.documents.mermaid_text import label
from pipeline.workflows.exploring.findings import Counterexample, Explored


def in_words(explored: Explored) -> Iterator[str]:
    """Lines: the verdict, and for a counterexample its steps and its picture."""
    found = explored.counterexample
    looked = f"{explored.states} states, up to {explored.depth} steps deep"
    if found is not None:
        yield found.what
        yield from (f"    {line}" for line in _steps(found))
        yield from (f"    {line}" for line in picture(found).splitlines())
    elif explored.bounded:
        yield (
            f"nothing wrong in {looked}; the bound was reached, so there is more that was not looked at: "
            "--bound N looks at N states"
        )
    else:
        yield f"every path ends, no branch is lost and each step happens once: {looked}"


def _steps(found: Counterexample) -> Iterator[str]:
    width = len(str(len(found.steps)))
    for number, words in enumerate(found.steps, 1):
        yield f"{number:>{width}}. {words}"
    if found.back_to is not None:
        yield f"{' ' * width}  and so on from step {found.back_to + 1}"


def picture(found: Counterexample) -> str:
    """The steps of a counterexample as a mermaid flowchart, ending in a line break."""
    lines = ["flowchart TD"]
    lines += [f"    s{number}[{label(f'{number}. {words}')}]" for number, words in enumerate(found.steps, 1)]
    lines += [f"    s{number} --> s{number + 1}" for number in range(1, len(found.steps))]
    if found.back_to is not None:
        lines.append(f"    s{len(found.steps)} -.-> s{found.back_to + 1}")
    else:
        lines += [f"    wrong[{label(found.what)}]", f"    s{len(found.steps)} --> wrong"]
    return "\n".join(lines) + "\n"
