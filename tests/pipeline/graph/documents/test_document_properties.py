"""Documents that no one has written: the way there and back, and any JSON at all."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.spec import END
from pipeline.graph.documents.reader import graph_document, read_graph
from tests.pipeline.graph.documents.examples import FULL, LIBRARY

NAMES = st.text(
    st.characters(exclude_categories=("Z", "C"), exclude_characters="/.#:"), min_size=1, max_size=5
)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
KEYS = st.lists(
    TEXTS.filter(lambda key: key not in ("answers", "failure", "fanout")), max_size=3, unique=True
)
SECONDS = st.floats(min_value=0.001, max_value=1e6)


def changed(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=parts)


NODE = changed(
    description=TEXTS,
    reads=KEYS,
    writes=KEYS,
    event_loop=st.just(value=True),
    max_visits=st.integers(1, 9),
    timeout_s=SECONDS,
    retry=changed(
        max_attempts=st.integers(4, 9),
        delay_s=SECONDS.filter(lambda value: value != 1),
        factor=st.floats(3, 9),
        jitter=st.floats(0.2, 1),
        retry_on=st.just(["Flaky", "TimeoutError"]),
    ).filter(bool),
    fan_out=changed(on_failure=st.sampled_from(["continue_others", "wait_all"]), branch_timeout_s=st.none()),
)
GRAPH = changed(
    version=TEXTS.filter(lambda version: version != "1"),
    goal=st.fixed_dictionaries({"description": TEXTS}),
    conversation=st.just("isolated"),
    limits=changed(max_steps=st.integers(1, 99), max_seconds=SECONDS).filter(bool),
    channels=st.dictionaries(
        TEXTS.filter(lambda key: key not in ("answers", "failure", "fanout")),
        st.sampled_from(["append", "merge", "last", "first", "longest"]),
        min_size=1,
        max_size=3,
    ),
)
CONDITIONS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"when": "on_success"},
        {"when": {"if": "x > 1"}},
        {"when": {"call": "urgent"}},
        {"mapping": {"a": "b"}},
    ]
)


@st.composite
def documents(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    """Documents as the writer writes them: a chain of nodes, some of them subgraphs."""
    names = draw(st.lists(NAMES.filter(lambda name: name != END), min_size=1, max_size=4, unique=True))
    nodes = []
    for name in names:
        if depth and draw(st.booleans()):
            nodes.append({"id": name, "subgraph": draw(st.just("inner") | documents(depth=depth - 1))})
        else:
            nodes.append({"id": name, "run": draw(st.sampled_from(["work", "other"])), **draw(NODE)})
    edges = [
        {"source": source, "target": target, **draw(CONDITIONS)}
        for source, target in zip(names, [*names[1:], END], strict=True)
    ]
    return {"name": draw(TEXTS), "entry": names[0], **draw(GRAPH), "nodes": nodes, "edges": edges}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents())
def test_document_to_graph_to_document_is_the_identity(given_document: dict[str, Any]) -> None:
    graph = read_graph(json.dumps(given_document), LIBRARY)
    assert graph_document(graph, LIBRARY) == given_document


KNOWN = [*FULL, *FULL["nodes"][0], *FULL["edges"][2], "if"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=6),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(["nodes", "edges", "goal", "limits", "fan_out", "channels", "entry", "terminals"]), JSON
)
def test_any_json_is_a_graph_or_refused_in_words(field: str, value: Any) -> None:
    for changed_document in (FULL | {field: value}, {"name": "x", field: [value]}):
        try:
            graph = read_graph(json.dumps(changed_document), LIBRARY)
        except GraphError as error:
            words = str(error)
        else:
            words = f"graph {graph.name}"
        assert words.startswith(f"graph {changed_document['name']}")
