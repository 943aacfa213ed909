"""Feeds: RSS and Atom, and what is none."""

from __future__ import annotations

import pytest

from pipeline.domain.errors import InvalidInput
from pipeline.watches.feed import MAX_ENTRIES, read_feed

RSS = b"""<?xml version="1.0"?><rss><channel><title>News</title>
<item><title>One</title><link>https://example.org/1</link><guid>g1</guid></item>
<item><title>Two  words</title><link>https://example.org/2</link></item>
<item><description>nothing to name it</description></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><title>One</title>
<link rel="self" href="https://example.org/self"/><link href="https://example.org/1"/></entry></feed>"""


def test_the_entries_of_an_rss_feed_have_an_identity() -> None:
    found = read_feed(RSS)
    assert [(one.id, one.title) for one in found] == [("g1", "One"), ("https://example.org/2", "Two words")]


def test_the_entries_of_an_atom_feed_have_their_link() -> None:
    (found,) = read_feed(ATOM)
    assert (found.id, found.title, found.link) == ("urn:1", "One", "https://example.org/1")


def test_only_the_first_entries_are_read() -> None:
    items = "".join(f"<item><guid>{number}</guid></item>" for number in range(MAX_ENTRIES + 50))
    assert len(read_feed(f"<rss>{items}</rss>".encode())) == MAX_ENTRIES


@pytest.mark.parametrize("data", [b"", b"hello", b"<html><body/></html>", b"<rss>", b"\xff\xfe<rss/>"])
def test_what_is_no_feed_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="no feed"):
        read_feed(data)


def test_a_feed_that_declares_entities_is_not_read() -> None:
    bomb = b'<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss><item><guid>&b;</guid></item></rss>'
    with pytest.raises(InvalidInput, match="document type"):
        read_feed(bomb)
