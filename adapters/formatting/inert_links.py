"""Remove links from a text: the label and the host remain, and nothing can be pressed, fetched or previewed.

For answers in conversations with text from elsewhere: an address in them could send a person's text to that
text's author. The result is Markdown again, so that every channel shows the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adapters.formatting.document import (
    Block,
    Code,
    CodeBlock,
    Document,
    Emphasis,
    Heading,
    Inline,
    LineBreak,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Strike,
    Strong,
    Table,
    Text,
    ThematicBreak,
)
from adapters.formatting.markdown import clean, parse
from adapters.formatting.writer import fenced, written
from pipeline.domain.hosts import host_of, named_hosts

MayLink = Callable[[str], bool]
"""Whether links to a host, in lower case, are allowed."""
_NO_HOST = "link"
_TRIES = 2


def inert(markdown: str, may_link: MayLink, *, rewrite: bool = False) -> str:
    """`markdown` with every address whose host `may_link` rejects replaced by the host as code.

    A text without such an address is returned unchanged, unless `rewrite` requires self-contained
    Markdown: then no link definition elsewhere can apply to its text. Never raises; a text that cannot be
    rewritten is shown as code.
    """
    text = markdown
    for _ in range(_TRIES):
        document = parse(text)
        changed = Document(tuple(_block(block, may_link) for block in document.blocks))
        if changed == document and not rewrite:
            return text
        text, rewrite = written(changed), False
    # The written Markdown does not parse back to the same tree: drop all markup.
    return text if _is_inert(text, may_link) else fenced(clean(markdown), "")


def _is_inert(text: str, may_link: MayLink) -> bool:
    document = parse(text)
    return document.blocks == tuple(_block(block, may_link) for block in document.blocks)


def _block(block: Block, may_link: MayLink) -> Block:
    match block:
        case Paragraph(children=children):
            return Paragraph(_inlines(children, may_link))
        case Heading(level=level, children=children):
            return Heading(level, _inlines(children, may_link))
        case ListBlock(items=items, start=start, loose=loose):
            inner = tuple(tuple(_block(one, may_link) for one in item) for item in items)
            return ListBlock(inner, start, loose)
        case Quote(children=blocks):
            return Quote(tuple(_block(one, may_link) for one in blocks))
        case Table(header=header, rows=rows):
            head = tuple(_inlines(cell, may_link) for cell in header)
            return Table(head, tuple(tuple(_inlines(cell, may_link) for cell in row) for row in rows))
        case CodeBlock() | ThematicBreak():
            return block


def _inlines(inlines: tuple[Inline, ...], may_link: MayLink) -> tuple[Inline, ...]:
    shown = tuple(_each(inlines, may_link))
    # A chat program may read two texts as one address in spite of marks between them.
    if any(not may_link(found.host) for found in named_hosts(_joined(shown))):
        return tuple(_without_marks(shown, may_link))
    return shown


def _each(inlines: Iterable[Inline], may_link: MayLink) -> Iterable[Inline]:
    for inline in inlines:
        match inline:
            case Text(text=text):
                yield from _text(text, may_link)
            case Link():
                yield from _link(inline, may_link)
            case Strong(children=children):
                yield Strong(tuple(_each(children, may_link)))
            case Emphasis(children=children):
                yield Emphasis(tuple(_each(children, may_link)))
            case Strike(children=children):
                yield Strike(tuple(_each(children, may_link)))
            case Code() | LineBreak():
                yield inline


def _link(link: Link, may_link: MayLink) -> Iterable[Inline]:
    host = host_of(link.target)
    if host and may_link(host):
        yield link
        return
    label = _joined(link.children).strip()
    if not label or label.startswith(link.target) or link.target.endswith(label):
        yield Code(host or _NO_HOST)
        return
    yield from _text(label.replace("\n", " "), may_link)
    yield Text(" (")
    yield Code(host or _NO_HOST)
    yield Text(")")


def _text(text: str, may_link: MayLink) -> Iterable[Inline]:
    done = 0
    for found in named_hosts(text):
        if may_link(found.host):
            continue
        if found.start > done:
            yield Text(text[done : found.start])
        yield Code(found.host or _NO_HOST)
        done = found.end
    if done < len(text):
        yield Text(text[done:])


def _without_marks(inlines: Iterable[Inline], may_link: MayLink) -> Iterable[Inline]:
    """Plain text and code."""
    words: list[str] = []
    for leaf in _leaves(inlines):
        if isinstance(leaf, Text):
            words.append(leaf.text)
            continue
        yield from _text("".join(words), may_link)
        words.clear()
        yield leaf
    yield from _text("".join(words), may_link)


def _leaves(inlines: Iterable[Inline]) -> Iterable[Text | Code | LineBreak]:
    for inline in inlines:
        if isinstance(inline, Text | Code | LineBreak):
            yield inline
        else:
            yield from _leaves(inline.children)


def _joined(inlines: Iterable[Inline]) -> str:
    """The joined text as a chat program reads it, with code separated."""
    return "".join(
        leaf.text if isinstance(leaf, Text) else " " if isinstance(leaf, Code) else "\n"
        for leaf in _leaves(inlines)
    )
