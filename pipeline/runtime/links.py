"""Remove links from the answers of a turn that has read foreign text, also while an answer is streamed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class InertLinks(Protocol):
    """Removes links from a text for people. The host implements it, as it knows its channels' Markdown."""

    def __call__(self, markdown: str, may_link: Callable[[str], bool], *, rewrite: bool = False) -> str:
        """`markdown` with only the host left of every address whose host, in lower case, `may_link` does not
        allow. `rewrite`: as Markdown that does not depend on the text around it. Never raises."""
        ...


@dataclass(slots=True)
class AnswerLinks:
    """The links of one turn. `known` are the operator's hosts, `named` returns those the person named."""

    inert_links: InertLinks
    known: tuple[str, ...] = ()
    named: Callable[[], frozenset[str]] = frozenset
    held: str = ""
    """The part of the stream that has not been shown yet."""

    def may_link(self, host: str) -> bool:
        """Whether a link to `host`, in lower case, stays."""
        name = host.removeprefix("www.")
        return name in self.named() or any(name == one or name.endswith(f".{one}") for one in self.known)

    def inert(self, markdown: str) -> str:
        """A whole text without the links that are not allowed."""
        return self.inert_links(markdown, self.may_link)

    def feed(self, text: str) -> str:
        """Add a part of the stream; returns what can be shown now: complete paragraphs and blocks."""
        self.held += text
        if "\n" not in text:
            return ""
        end = _complete(self.held)
        if not end:
            return ""
        done, self.held = self.held[:end], self.held[end:]
        shown = self.inert_links(done, self.may_link, rewrite=True)
        return f"{shown}\n\n" if shown.strip() else ""


def _complete(text: str) -> int:
    """The end of the last block that a blank line ends; 0 without one."""
    fence, end, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        opening = _FENCE.match(line)
        if opening and not fence:
            fence = opening[1]
        elif fence and opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and not line.strip() and line.endswith("\n"):
            end = at
    return end
