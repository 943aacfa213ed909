"""Extract the title, the text and the links of HTML, which is untrusted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

from pipeline.domain.visible import visible_text

MAX_LINKS = 20
_CHUNK_CHARS = 16_384
_TANGLED_CHARS = 65_536
_PARSING_S = 3.0
_DEEPEST = 100
_SILENT = frozenset(
    {"script", "style", "template", "noscript", "svg", "iframe", "object", "head", "textarea", "select"}
)
_BLOCKS = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "br",
            "dd",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
        ),
        *(
            "figure",
            "footer",
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "li",
            "main",
            "nav",
        ),
        *("ol", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
    }
)
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_GAPS = re.compile(r"\n\s*\n+")


@dataclass(slots=True)
class ReadPage:
    """The text of a page."""

    title: str = ""
    """The title, not shortened."""
    text: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    """The text and the address of the first links to other pages."""
    cut: bool = False
    """Whether the end of the page was not read."""


def read_html(text: str, monotonic: Callable[[], float], *, base: str = "", cut: bool = False) -> ReadPage:
    """The page as text. Takes up to some seconds of processor time.

    `base` is its address; `cut` says that its end is missing already.
    """
    reader = _Reader(base)
    # The parser is slow on hostile pages: parsing stops at a time limit.
    until = monotonic() + _PARSING_S
    for start in range(0, len(text), _CHUNK_CHARS):
        reader.feed(text[start : start + _CHUNK_CHARS])
        if len(reader.rawdata) > _TANGLED_CHARS or monotonic() > until:
            cut = True
            break
    else:
        reader.close()
    return ReadPage(
        # A cut title may end in half a word or half a secret.
        title="" if cut and reader.in_title else " ".join(visible("".join(reader.title)).split()),
        text=_tidy("".join(reader.words)),
        links=[(" ".join(words.split()), url) for words, url in reader.links],
        cut=cut,
    )


def visible(text: str) -> str:
    """See `visible_text`. Works in chunks, so that other threads can run in between."""
    starts = range(0, len(text), _CHUNK_CHARS)
    return "".join(visible_text(text[start : start + _CHUNK_CHARS]) for start in starts)


def _tidy(text: str) -> str:
    text = visible(_BLANKS.sub(" ", text))
    lines = "\n".join(line.strip() for line in text.split("\n"))
    return _GAPS.sub("\n\n", lines).strip()


class _Reader(HTMLParser):
    """Collects the text that a reader of the page would see."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words: list[str] = []
        self.title: list[str] = []
        self.links: list[tuple[str, str]] = []
        self._base = base
        self._silent: list[str] = []
        self.in_title = False
        self._link: tuple[str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_title = tag == "title" and not self.title
        if tag == "body":
            # Many pages never close the head.
            self._silent = [name for name in self._silent if name != "head"]
        if tag in _SILENT:
            self._silent += [tag] if len(self._silent) < _DEEPEST else []
        elif tag in _BLOCKS:
            self.words.append("\n")
        if tag == "a":
            self._end_link()
            href = next((value for name, value in attrs if name == "href" and value), "")
            self._link = (href, [])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # <svg/> has no end tag.
        if tag not in _SILENT:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self.in_title = False
        if tag in self._silent:
            while self._silent.pop() != tag:
                pass
        elif tag in _BLOCKS:
            self.words.append("\n")
        if tag == "a":
            self._end_link()

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title.append(data)
        elif not self._silent:
            self.words.append(data)
            if self._link is not None:
                self._link[1].append(data)

    def _end_link(self) -> None:
        if self._link is None:
            return
        href, words = self._link
        self._link = None
        try:
            url = urljoin(self._base, href.strip()).partition("#")[0]
        except ValueError:
            return
        known = {known for _, known in self.links}
        fits = url.startswith(("http://", "https://")) and len(url) <= 500 and url not in known
        if fits and href and "".join(words).strip() and len(self.links) < MAX_LINKS:
            self.links.append(("".join(words), url))
