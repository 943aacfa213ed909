"""Render to HTML for the page: built from the tree, so that it contains only the tags named here.

Images become links: the page loads no foreign content. The result is a fragment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from adapters.formatting.document import (
    Align,
    Block,
    Cell,
    Code,
    CodeBlock,
    Emphasis,
    Heading,
    Inline,
    LineBreak,
    Link,
    ListBlock,
    Paragraph,
    Quote,
    Strong,
    Table,
    Text,
    words,
)
from adapters.formatting.fallback import rendered
from adapters.formatting.links import WEB, resolve
from adapters.formatting.markdown import clean, literal, parse

TAGS = frozenset(
    {
        *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol"),
        *("p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    }
)
"""Every tag that can occur."""
_SCHEMES = WEB | {"mailto"}


def render_html(markdown: str) -> str:
    """`markdown` as a fragment of HTML; empty for blank text."""
    return rendered(lambda: _blocks(parse(markdown).blocks), lambda: _blocks(literal(clean(markdown))))


def _blocks(blocks: Iterable[Block]) -> str:
    return "\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{_inlines(block.children)}</p>"
    if isinstance(block, Heading):
        return f"<h{block.level}>{_inlines(block.children)}</h{block.level}>"
    if isinstance(block, CodeBlock):
        language = f' class="language-{escape(block.language)}"' if block.language else ""
        return f"<pre><code{language}>{escape(block.text)}</code></pre>"
    if isinstance(block, ListBlock):
        return _list(block)
    if isinstance(block, Quote):
        return f"<blockquote>{_blocks(block.children)}</blockquote>"
    if isinstance(block, Table):
        return _table(block)
    return "<hr>"


def _list(block: ListBlock) -> str:
    items = "".join(f"<li>{_item(item, loose=block.loose)}</li>" for item in block.items)
    if block.start is None:
        return f"<ul>{items}</ul>"
    start = f' start="{block.start}"' if block.start != 1 else ""
    return f"<ol{start}>{items}</ol>"


def _item(blocks: tuple[Block, ...], *, loose: bool) -> str:
    if loose:
        return _blocks(blocks)
    return "\n".join(
        _inlines(block.children) if isinstance(block, Paragraph) else _block(block) for block in blocks
    )


def _table(block: Table) -> str:
    head = _row("th", block.header, block.aligned)
    rows = "".join(f"<tr>{_row('td', row, block.aligned)}</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(tag: str, cells: Sequence[Cell], aligned: Sequence[Align]) -> str:
    return "".join(
        _cell(tag, cell, aligned[column] if column < len(aligned) else "")
        for column, cell in enumerate(cells)
    )


def _cell(tag: str, cell: Cell, align: Align) -> str:
    where = f' align="{align}"' if align else ""
    return f"<{tag}{where}>{_inlines(cell)}</{tag}>"


def _inlines(inlines: Iterable[Inline]) -> str:
    return "".join(_inline(inline) for inline in inlines)


def _inline(inline: Inline) -> str:
    if isinstance(inline, Text):
        return escape(inline.text)
    if isinstance(inline, Code):
        return f"<code>{escape(inline.text)}</code>"
    if isinstance(inline, LineBreak):
        return "<br>"
    if isinstance(inline, Link):
        return _link(inline)
    tag = "strong" if isinstance(inline, Strong) else "em" if isinstance(inline, Emphasis) else "del"
    return f"<{tag}>{_inlines(inline.children)}</{tag}>"


def _link(link: Link) -> str:
    plain = words(link.children)
    label, target = resolve(plain, link.target, schemes=_SCHEMES)
    # The label's formatting is kept only if no text was added to it.
    shown = _inlines(link.children) if label == plain else escape(label)
    if not target:
        return shown
    return f'<a href="{escape(target)}" target="_blank" rel="noopener noreferrer nofollow">{shown}</a>'
