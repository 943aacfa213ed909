"""Pictures: the exact text of small graphs, one grammar for all, and the path of a run drawn on them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import (
    END,
    Always,
    Condition,
    EdgeSpec,
    GraphSpec,
    LlmDecide,
    NodeSpec,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.documents.mermaid_text import MAX_LABEL, identifier, label

LABEL = r'"[^"\n]*"'
ID = r"(?:n|start|at)_[A-Za-z0-9_]*"
NODE = re.compile(
    rf"\s+({ID})(?:\[{LABEL}\]|\(\[{LABEL}\]\)|\{{\{{{LABEL}\}}\}}|\[\[{LABEL}\]\]|\(\({LABEL}\)\)|"
    rf"\(\(\({LABEL}\)\)\)|>{LABEL}\])"
)
SUBGRAPH = re.compile(rf"\s+subgraph ({ID})\[{LABEL}\]")
ARROW = re.compile(rf"    ({ID}) (-->|-\.->)(?:\|({LABEL})\|)? ({ID})")
CLASS_DEF = re.compile(r"    classDef (\w+) [a-z0-9:#,-]+")
CLASS = re.compile(rf"    class ({ID}(?:,{ID})*) (\w+)")
LINK_STYLE = re.compile(r"    linkStyle (\d+(?:,\d+)*) [a-z0-9:#,-]+")
ENTITY = re.compile(r"#(?:\d+|quot|amp|lt);")


def read(picture: str) -> list[tuple[str, str, str]]:
    """The arrows (source, label, target) of a picture, every line of which is of one of the allowed forms."""
    first, *lines = picture.splitlines()
    assert first == "flowchart TD"
    declared: list[str] = []
    arrows: list[tuple[str, str, str]] = []
    classes: set[str] = set()
    depth = 0
    for line in lines:
        for text in re.findall(LABEL, line):
            inside = ENTITY.sub("", text[1:-1].replace("<br/>", ""))
            assert not set(inside) & set('"#&<%`\\*~$'), line
        if node := NODE.fullmatch(line) or SUBGRAPH.fullmatch(line):
            assert not arrows, "places are declared before the first arrow"
            declared.append(node[1])
            depth += "subgraph" in line[: line.index(node[1])]
        elif line.strip() == "end":
            depth -= 1
        elif arrow := ARROW.fullmatch(line):
            arrows.append((arrow[1], (arrow[3] or "")[1:-1], arrow[4]))
        elif defined := CLASS_DEF.fullmatch(line):
            classes.add(defined[1])
        elif used := CLASS.fullmatch(line):
            assert used[2] in classes
            assert set(used[1].split(",")) <= set(declared)
        else:
            style = LINK_STYLE.fullmatch(line)
            assert style, f"not a line of a picture: {line}"
            assert all(int(number) < len(arrows) for number in style[1].split(","))
    assert depth == 0
    assert [name for name, count in Counter(declared).items() if count > 1] == []
    assert {end for source, _, target in arrows for end in (source, target)} <= set(declared)
    return arrows


async def work(_state: State, _context: object) -> NodeResult:
    return NodeResult()


def choose(_state: State) -> str:
    return END


def edge(source: str, target: str, when: Condition | None = None, *, fallback: bool = False) -> EdgeSpec:
    return EdgeSpec(source=source, target=target, when=when or Always(), fallback=fallback)


def graph(nodes: str | dict[str, Any], *edges: EdgeSpec, **rest: Any) -> GraphSpec[object]:
    every = dict.fromkeys(nodes.split(), work) if isinstance(nodes, str) else nodes
    return GraphSpec(name="g", entry=next(iter(every)), nodes=every, edges=edges, **rest)


def numbered(picture: str) -> dict[str, str]:
    """Each arrow with a number, as `source target`, and its numbers."""
    found = {}
    for source, words, target in read(picture):
        if numbers := re.match(r"(\d[\d, …]*)(?: · |$)", words):
            found[f"{source} {target}"] = numbers[1].strip()
    return found


def classed(picture: str, name: str) -> set[str]:
    found = re.findall(rf"    class (\S+) {name}\n", picture)
    return set(found[0].split(",")) if found else set()


def test_a_small_graph_is_drawn_like_this() -> None:
    drawn = graph(
        {"ask": work, "answer": NodeSpec(run=work, event_loop=True), "check": work, "bye": work},
        edge("ask", "answer", When("confidence >= 0.8")),
        edge("ask", "check"),
        edge("answer", "bye"),
        edge("check", "answer"),
        pause_nodes=("check",),
        terminals=("bye",),
    )
    assert mermaid(drawn) == (
        "flowchart TD\n"
        '    start_(("start"))\n'
        '    n_ask["ask"]\n'
        '    n_answer[["answer"]]\n'
        '    n_check{{"check"}}\n'
        '    n_bye(["bye"])\n'
        '    n_end((("end")))\n'
        "    start_ --> n_ask\n"
        '    n_ask -->|"if confidence >= 0.8"| n_answer\n'
        '    n_ask -->|"always"| n_check\n'
        '    n_answer -->|"always"| n_bye\n'
        '    n_check -->|"always"| n_answer\n'
        "    n_bye --> n_end\n"
    )


def test_the_path_of_a_run_is_drawn_like_this() -> None:
    drawn = graph("a b", edge("a", "b"), EdgeSpec(source="b", when=Route(choose, (END, "a"))))
    assert mermaid(drawn, path=("a", "b", "a", "b", END)) == (
        "flowchart TD\n"
        '    start_(("start"))\n'
        '    n_a["a"]\n'
        '    n_b["b"]\n'
        '    n_end((("end")))\n'
        '    start_ -->|"1"| n_a\n'
        '    n_a -->|"2, 4 · always"| n_b\n'
        '    n_b -->|"5 · choose"| n_end\n'
        '    n_b -->|"3 · choose"| n_a\n'
        "    classDef visited fill:#dbeafe,stroke:#1d4ed8,color:#111827\n"
        "    class n_a,n_b,n_end visited\n"
        "    linkStyle 0,1,2,3 stroke:#1d4ed8,stroke-width:3px\n"
    )


def test_every_kind_of_way_has_its_words() -> None:
    drawn = graph(
        {
            "a": NodeSpec(run=work, goes_to=("c", END), reviser="b"),
            **dict.fromkeys("bcdef", work),
        },
        edge("a", "b", When(lambda _state: True)),
        edge("a", "c", LlmDecide("it is late")),
        edge("a", "d", LlmDecide("it is early"), fallback=True),
        edge("a", "e", OnFailure()),
        edge("a", "f", OnSuccess()),
    )
    assert [words for source, words, _ in read(mermaid(drawn)) if source == "n_a"] == [
        "if #lt;lambda>",
        "llm: it is late",
        "llm or fallback: it is early",
        "on failure",
        "on success",
        "goto",
        "end",
        "revise",
    ]
    assert mermaid(drawn).count("-.->") == 3


def test_entry_points_limits_of_visits_and_joins_are_shown() -> None:
    drawn = graph(
        {"fork": work, "one": work, "two": NodeSpec(run=work, max_visits=1), "join": work},
        edge("fork", "one", OnSuccess()),
        edge("fork", "two", OnSuccess()),
        edge("one", "join"),
        edge("two", "join"),
        entry_points={"again": "join"},
    )
    picture = mermaid(drawn)
    assert '    at_again>"again"]\n' in picture
    assert ("at_again", "", "n_join") in read(picture)
    assert '    n_two["two<br/>at most 1 visit"]\n' in picture
    assert '    n_join["join<br/>joins fork"]\n' in picture
    assert classed(picture, "join") == {"n_join"}


def nested() -> GraphSpec[object]:
    inner = graph("q p", edge("q", "p", OnSuccess()))
    outer = graph({"deep": NodeSpec(subgraph=inner), "talk": work}, edge("deep", "talk"))
    return graph(
        {"load": work, "care": NodeSpec(subgraph=outer, max_visits=2), "save": work},
        edge("load", "care"),
        edge("care", "save"),
    )


def test_subgraphs_are_blocks_within_blocks() -> None:
    picture = mermaid(nested())
    read(picture)
    outside, inside, innermost = (picture.index(f"{indent}n_{name}") for indent, name in BLOCKS)
    assert picture.index('    subgraph n_care["care: g<br/>at most 2 visits"]\n') < inside
    assert outside < picture.index('        subgraph n_careZdeep["deep: g"]\n') < innermost < inside
    assert ("n_load", "always", "n_care") in read(picture)
    assert ("start_careZdeep", "", "n_careZdeepZq") in read(picture)


BLOCKS = (("    ", "load["), ("        ", "careZtalk["), ("            ", "careZdeepZq["))


def test_a_path_goes_into_subgraphs_and_out_again_each_time() -> None:
    once = ("care.deep.q", "care.deep.p", "care.deep", "care.talk", "care")
    picture = mermaid(nested(), path=("load", *once, "save", END))
    assert numbered(picture) == {
        "start_ n_load": "1",
        "n_load n_care": "2",
        "start_care n_careZdeep": "3",
        "start_careZdeep n_careZdeepZq": "4",
        "n_careZdeepZq n_careZdeepZp": "5",
        "n_careZdeepZp n_careZdeepZend": "6",
        "n_careZdeep n_careZtalk": "7",
        "n_careZtalk n_careZend": "8",
        "n_care n_save": "9",
        "n_save n_end": "10",
    }
    assert numbered(mermaid(nested(), path=("load", *once, *once)))["start_care n_careZdeep"] == "3, 10"


FAN = (
    edge("fork", "one", OnSuccess()),
    edge("fork", "two", OnSuccess()),
    edge("one", "more"),
    edge("more", "join"),
    edge("two", "join"),
)


@pytest.mark.parametrize(
    "path", [("fork", "one", "two", "more", "join"), ("fork", "two", "one", "more", "join")]
)
def test_branches_are_followed_in_whatever_order_they_finished(path: Sequence[str]) -> None:
    picture = mermaid(graph("fork one two more join", *FAN), path=path)
    assert set(numbered(picture)) == {
        "start_ n_fork",
        *("n_fork n_one", "n_fork n_two", "n_one n_more", "n_more n_join", "n_two n_join"),
    }
    assert all("," not in numbers for numbers in numbered(picture).values())


def test_a_jump_that_no_edge_declares_is_drawn_as_one() -> None:
    drawn = graph("a b c", edge("a", "b"), edge("b", "c"))
    arrows = read(mermaid(drawn, path=("a", "b", "c", "b", "b")))
    assert ("n_c", "4 · jump", "n_b") in arrows
    assert ("n_b", "5 · again", "n_b") in arrows
    assert ("n_a", "2 · always", "n_b") in arrows


def test_a_node_that_was_skipped_is_passed_along_its_edges() -> None:
    drawn = graph(
        {"a": work, "b": NodeSpec(run=work, max_visits=1), "c": work},
        edge("a", "b"),
        edge("b", "c"),
        edge("c", "a", When("again")),
    )
    picture = mermaid(drawn, path=("a", "b", "c", "a", "c"))
    assert numbered(picture)["n_a n_b"] == "2, 5"
    assert numbered(picture)["n_b n_c"] == "3, 6"


def test_of_two_edges_to_one_place_a_failed_node_took_the_one_for_failures() -> None:
    drawn = graph("a b", edge("a", "b", OnSuccess()), edge("a", "b", OnFailure()))
    assert ("n_a", "2 · on success", "n_b") in read(mermaid(drawn, path=("a", "b")))
    assert ("n_a", "2 · on failure", "n_b") in read(mermaid(drawn, path=("a", "b"), failed=("a",)))


def test_failed_and_waiting_nodes_have_their_own_colours() -> None:
    drawn = graph("a b c", edge("a", "b"), edge("b", "c"))
    picture = mermaid(drawn, path=("a", "b"), failed=("a",), open_gates=("b",))
    assert (classed(picture, "failed"), classed(picture, "waiting")) == ({"n_a"}, {"n_b"})
    assert classed(picture, "visited") == set()


def test_a_long_loop_shows_its_first_numbers_and_its_last() -> None:
    drawn = graph("a", edge("a", "a", When("more")))
    assert numbered(mermaid(drawn, path=("a",) * 41))["n_a n_a"] == "2, 3, 4, 5, 6, …, 41"


def test_an_end_that_only_the_run_knows_is_drawn_with_the_run() -> None:
    drawn = graph("a b", edge("a", "b", When("x")), edge("b", "a"))
    assert "n_end" not in mermaid(drawn)
    assert ("n_a", "2 · jump", "n_end") in read(mermaid(drawn, path=("a", END)))


@pytest.mark.parametrize(
    "names", [{"path": ("a", "ghost")}, {"failed": ("ghost",)}, {"open_gates": ("ghost",)}]
)
def test_a_label_that_the_graph_does_not_have_is_refused(names: dict[str, Collection[str]]) -> None:
    with pytest.raises(GraphError, match="ghost"):
        mermaid(graph("a"), **names)  # type: ignore[arg-type]  # - one keyword at a time


HOSTILE = ["End", "subgraph", "click", "o", "x", 'a"b', "a[b]", "a{b}", "(b)", "a|b", "🙂", "<b>", "a&amp;b"]
HOSTILE += [
    "--x",
    "a-->b",
    "`code`",
    "%%{init}%%",
    "$$x$$",
    "_x_",
    "n_a",
    "linkStyle",
    "é",
    "1",
    "a;b",
    "X5aX",
]


def test_hostile_names_stay_inside_their_labels() -> None:
    drawn = graph(
        dict.fromkeys(HOSTILE, work),
        *(edge(one, two) for one, two in itertools.pairwise(HOSTILE)),
        entry_points={'new "x"': "o", "": "x", "1. one": "é"},
    )
    assert len(read(mermaid(drawn, path=HOSTILE))) == len(HOSTILE) + 4


@given(st.lists(st.text(max_size=120), min_size=2, max_size=8, unique=True))
def test_any_words_make_a_picture(words: list[str]) -> None:
    described = [f"{text}." for text in words]
    names = [f"t{number}" for number in range(len(words))]
    drawn = graph(
        " ".join(["a", *names]),
        *(
            edge("a", name, LlmDecide(text), fallback=name == "t0")
            for name, text in zip(names, described, strict=True)
        ),
    )
    assert len(read(mermaid(drawn))) == 2 * len(words) + 1


@given(st.lists(st.text(max_size=4), max_size=3), st.lists(st.text(max_size=4), max_size=3))
def test_different_names_have_different_ids(one: list[str], other: list[str]) -> None:
    assert (identifier("n", *one) == identifier("n", *other)) == (one == other or _both_empty(one, other))


def _both_empty(one: list[str], other: list[str]) -> bool:
    """No part and one empty part are the same to a reader."""
    return {tuple(one), tuple(other)} == {(), ("",)}


@given(
    st.lists(
        st.sampled_from(["load", "care.deep.q", "care.deep", "care.talk", "care", "save", END]), max_size=12
    )
)
def test_any_order_of_known_places_can_be_drawn(path: list[str]) -> None:
    picture = mermaid(nested(), path=path)
    read(picture)
    assert not path or "linkStyle" in picture or "class" in picture


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("two\nlines", '"two<br/>lines"'),
        ("1. one", '"1#46; one"'),
        ("- one", '"#45; one"'),
        ("style x:#fff;", '"style x#58;#35;fff;"'),
        ("if: so", '"if: so"'),
        ("bell\x07", '"bell"'),
        ("", '" "'),
        ("é" * 100, f'"{"é" * (MAX_LABEL - 1)}…"'),
    ],
)
def test_labels_are_taken_as_text(text: str, drawn: str) -> None:
    assert label(text) == drawn
