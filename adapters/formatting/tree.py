"""Build the tree from the parser's flat token list. Two stacks, no recursion: the text controls the depth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markdown_it.token import Token

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
    Strike,
    Strong,
    Table,
    Text,
    ThematicBreak,
)

_ADDRESS = re.compile(r"https?://[^\s<>\"`]+", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]{1,32}")
_SPACES = re.compile(r"[ \t]*\n[ \t]*")


@dataclass(slots=True)
class _Open:
    """A block that is not closed yet."""

    token: Token
    blocks: list[Block] = field(default_factory=list)
    inlines: tuple[Inline, ...] = ()
    items: list[tuple[Block, ...]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    aligned: list[Align] = field(default_factory=list)
    """The alignment of the first row's cells."""
    loose: bool = False


def blocks_of(tokens: Sequence[Token]) -> tuple[Block, ...]:
    """The blocks of the parser's `tokens`."""
    stack = [_Open(Token("root", "", 1))]
    for token in tokens:
        if token.type == "inline":
            stack[-1].inlines = inlines_of(token.children or ())
        elif token.nesting == 1:
            stack.append(_Open(token))
        elif token.nesting == -1:
            _close(stack.pop(), stack)
        elif token.type in ("fence", "code_block"):
            stack[-1].blocks.append(CodeBlock(token.content.removesuffix("\n"), _language(token.info)))
        elif token.type == "hr":
            stack[-1].blocks.append(ThematicBreak())
    return tuple(stack[0].blocks)


def _close(done: _Open, stack: list[_Open]) -> None:
    _CLOSERS[done.token.type](done, stack)


def _close_paragraph(done: _Open, stack: list[_Open]) -> None:
    stack[-1].blocks.append(Paragraph(done.inlines))
    if not done.token.hidden and len(stack) > 1 and stack[-1].token.type == "list_item_open":
        stack[-2].loose = True


def _close_heading(done: _Open, stack: list[_Open]) -> None:
    stack[-1].blocks.append(Heading(int(done.token.tag[1:]), done.inlines))


def _close_quote(done: _Open, stack: list[_Open]) -> None:
    stack[-1].blocks.append(Quote(tuple(done.blocks)))


def _close_item(done: _Open, stack: list[_Open]) -> None:
    stack[-1].items.append(tuple(done.blocks))


def _close_list(done: _Open, stack: list[_Open]) -> None:
    start = int(done.token.attrs.get("start", 1)) if done.token.type == "ordered_list_open" else None
    stack[-1].blocks.append(ListBlock(tuple(done.items), start, done.loose))


def _close_cell(done: _Open, stack: list[_Open]) -> None:
    stack[-1].cells.append(done.inlines)
    stack[-1].aligned.append(_ALIGNED.get(str(done.token.attrs.get("style", "")), ""))


def _close_row(done: _Open, stack: list[_Open]) -> None:
    stack[-1].rows.append(tuple(done.cells))
    stack[-1].aligned = stack[-1].aligned or done.aligned


def _close_section(done: _Open, stack: list[_Open]) -> None:
    stack[-1].rows.extend(done.rows)
    stack[-1].aligned = stack[-1].aligned or done.aligned


def _close_table(done: _Open, stack: list[_Open]) -> None:
    aligned = tuple(done.aligned) if any(done.aligned) else ()
    stack[-1].blocks.append(Table(done.rows[0], tuple(done.rows[1:]), aligned))


_ALIGNED: dict[str, Align] = {f"text-align:{where}": where for where in ("left", "center", "right")}
"""The parser's attribute for each alignment."""

_CLOSERS: dict[str, Callable[[_Open, list[_Open]], None]] = {
    "paragraph_open": _close_paragraph,
    "heading_open": _close_heading,
    "blockquote_open": _close_quote,
    "list_item_open": _close_item,
    "bullet_list_open": _close_list,
    "ordered_list_open": _close_list,
    "th_open": _close_cell,
    "td_open": _close_cell,
    "tr_open": _close_row,
    "thead_open": _close_section,
    "tbody_open": _close_section,
    "table_open": _close_table,
}

_MARKS: dict[str, type[Strong | Emphasis | Strike]] = {
    "strong_open": Strong,
    "em_open": Emphasis,
    "s_open": Strike,
}


def inlines_of(tokens: Sequence[Token]) -> tuple[Inline, ...]:
    """The inlines of the parser's `tokens`. A mark within the same mark counts once, so that the
    result is at most four deep."""
    stack: list[tuple[str, str, list[Inline]]] = [("root", "", [])]
    for token in tokens:
        children = stack[-1][2]
        if token.nesting == 1:
            stack.append((token.type, str(token.attrs.get("href", "")), []))
        elif token.nesting == -1:
            kind, target, inner = stack.pop()
            stack[-1][2].extend(_wrapped(kind, target, inner, [name for name, _, _ in stack]))
        elif token.type in ("softbreak", "hardbreak"):
            children.append(LineBreak())
        elif token.type == "code_inline":
            children.append(Code(token.content))
        elif token.type == "image":
            children.extend(_image(token, [name for name, _, _ in stack]))
        else:
            _add_text(children, token.content)
    inlines = stack[0][2]
    return _with_addresses(inlines)


def _wrapped(kind: str, target: str, inner: list[Inline], within: list[str]) -> list[Inline]:
    if kind in within:
        return inner
    if kind == "link_open":
        return [Link(target, tuple(inner))]
    mark = _MARKS.get(kind)
    return [mark(tuple(inner))] if mark is not None and inner else inner


def _image(token: Token, within: list[str]) -> list[Inline]:
    alt = Text(_SPACES.sub(" ", token.content))
    if "link_open" in within:
        return [alt]
    return [Link(str(token.attrs.get("src", "")), (alt,) if alt.text else ())]


def _add_text(children: list[Inline], text: str) -> None:
    for number, line in enumerate(text.split("\n")):
        if number:
            children.append(LineBreak())
        if line and children and isinstance(children[-1], Text):
            children[-1] = Text(children[-1].text + line)
        elif line:
            children.append(Text(line))


def _with_addresses(inlines: Sequence[Inline]) -> tuple[Inline, ...]:
    """Convert bare addresses to links: as text, a channel's markup characters inside them would be
    escaped, which breaks the address."""
    found: list[Inline] = []
    for inline in inlines:
        if isinstance(inline, Text):
            found.extend(_split_text(inline) if "://" in inline.text else (inline,))
        elif isinstance(inline, Strong | Emphasis | Strike):
            found.append(type(inline)(_with_addresses(inline.children)))
        else:
            found.append(inline)
    return tuple(found)


def _split_text(text: Text) -> list[Inline]:
    found: list[Inline] = []
    done = 0
    for match in _ADDRESS.finditer(text.text):
        address = _without_punctuation(match.group())
        if match.start() > done:
            found.append(Text(text.text[done : match.start()]))
        found.append(Link(address, (Text(address),)))
        done = match.start() + len(address)
    if done < len(text.text):
        found.append(Text(text.text[done:]))
    return found


def _without_punctuation(address: str) -> str:
    """Remove the punctuation after an address; a closing bracket with an opening one inside belongs to it."""
    spare = {close: address.count(close) - address.count(start) for start, close in ("()", "[]")}
    end = len(address)
    while end:
        last = address[end - 1]
        if spare.get(last, 0) > 0:
            spare[last] -= 1
        elif last not in ".,;:!?'*_~|":
            break
        end -= 1
    return address[:end]


def _language(info: str) -> str:
    match = _LANGUAGE.match(info.strip())
    return match.group() if match else ""
