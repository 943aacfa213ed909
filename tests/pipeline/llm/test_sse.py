"""Events come out the same however their bytes arrive."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.sse import MAX_LINE_BYTES, EventTooLong, SseReader

LINES = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20).map(str.encode)
EVENTS = st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=6)


def read(stream: bytes, cuts: list[int]) -> list[bytes]:
    reader = SseReader()
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    found: list[bytes] = []
    for start, end in itertools.pairwise(places):
        found += reader.feed(stream[start:end])
    return found + reader.end()


@given(EVENTS, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cut_of_the_bytes_gives_the_same_events(
    events: list[list[bytes]], newline: bytes, cuts: list[int]
) -> None:
    stream = b"".join(
        b"".join(b"data: " + line + newline for line in event) + b": a comment" + newline + newline
        for event in events
    )
    assert read(stream, cuts) == [b"\n".join(event) for event in events]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b": keep-alive\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n", [b"a"]),
        (b"event: delta\nid: 7\nretry: 10\ndata:a\n\n", [b"a"]),
        (b"data:  two blanks\n\n", [b" two blanks"]),
        (b"data: a\n\ndata: the last one has no end", [b"a", b"the last one has no end"]),
        (b"data: a\r\n\r\ndata: b\r", [b"a", b"b"]),
        (b"<html>\n<body>no stream</body>\n\n", []),
        (b"", []),
    ],
)
def test_what_streams_look_like_in_the_wild(stream: bytes, events: list[bytes]) -> None:
    assert read(stream, []) == events
    assert read(stream, list(range(len(stream)))) == events


@pytest.mark.parametrize("piece", [b"x" * 1000, b"data: " + b"x" * 1000 + b"\n"])
def test_a_line_and_an_event_without_end_are_refused(piece: bytes) -> None:
    reader = SseReader()
    for _ in range(MAX_LINE_BYTES // len(piece) - 1):
        assert reader.feed(piece) == []
    with pytest.raises(EventTooLong):
        reader.feed(piece * 4)
