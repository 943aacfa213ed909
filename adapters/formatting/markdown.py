"""Parse Markdown to the tree: CommonMark with tables and strikethrough. Raw HTML is plain text.

A model's output may be large or malformed. Texts whose parse would take more than linear time
(thousands of brackets, deep nesting) lose their formatting, never their text.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from adapters.formatting.document import Block, Document, LineBreak, Paragraph, Text
from adapters.formatting.tree import blocks_of

MAX_PARSED = 64_000
"""Characters that are parsed; the rest is shown as written. More than any channel shows as messages
(`overflow.MAX_PARTS` parts)."""
_MAX_NESTING = 40
_MAX_BRACKETS = 300
_MAX_DELIMITERS = 2_000
_MAX_TABLE_WORK = 40_000
_MAX_QUOTE_WORK = 40_000
"""Lines times the deepest quote: the parser reads each line once for every quote around it."""
_MAX_ADDRESSES = 2
"""Address characters per character of the text: an address can be defined once and used often."""
_FEW_ADDRESSES = 20_000

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_QUOTE_SIGNS = re.compile(r"[ \t>*+\d.)-]*")
_MARKUP = re.compile(r"[\\`*_~\[\]!<&\n]")


def parse(markdown: str) -> Document:
    """The tree of `markdown`. Accepts any str and never raises; lone surrogates and control characters
    become U+FFFD."""
    text = clean(markdown)
    head, rest = _parsed_part(text)
    try:
        tokens = [] if _quotes_too_deep(head) else _parser_for(head).parse(head)
        unfit = not tokens or _is_cut_off(tokens) or _repeats_addresses(tokens, len(head))
        blocks = None if unfit else blocks_of(tokens)
    except Exception:  # noqa: BLE001 - a fault in the parser must cost the formatting, not the answer
        blocks = None
    if blocks is None:
        blocks = literal(head)
    return Document((*blocks, *literal(rest)))


def clean(text: str) -> str:
    """`text` with "\\n" for every line ending and U+FFFD for characters that no channel can show."""
    return _UNSHOWABLE.sub("\ufffd", _LINE_ENDS.sub("\n", text))


def literal(text: str) -> tuple[Block, ...]:
    """Paragraphs with cleaned `text` as written."""
    paragraphs: list[Block] = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = [line.rstrip() for line in paragraph.split("\n")]
        inlines: list[Text | LineBreak] = []
        for line in lines:
            if inlines:
                inlines.append(LineBreak())
            if line:
                inlines.append(Text(line))
        if any(lines):
            paragraphs.append(Paragraph(tuple(inlines)))
    return tuple(paragraphs)


def _parsed_part(text: str) -> tuple[str, str]:
    if len(text) <= MAX_PARSED:
        return text, ""
    cut = text.rfind("\n\n", MAX_PARSED // 2, MAX_PARSED)
    if cut < 0:
        cut = text.rfind("\n", MAX_PARSED // 2, MAX_PARSED)
    return (text[:cut], text[cut:]) if cut >= 0 else ("", text)


def _quotes_too_deep(text: str) -> bool:
    marks = text.count(">")
    if marks < 2:
        return False
    lines = text.split("\n")
    return max(_quote_depth(line) for line in lines) * len(lines) > _MAX_QUOTE_WORK


def _quote_depth(line: str) -> int:
    """The number of signs at the start of `line` that can open a quote."""
    opening = _QUOTE_SIGNS.match(line)
    return 0 if opening is None else opening.group().count(">")


def _repeats_addresses(tokens: list[Token], length: int) -> bool:
    """Whether links have far more characters than the text, because they repeat the same addresses."""
    found = 0
    for token in tokens:
        for child in token.children or ():
            if child.nesting != -1 and child.attrs:
                found += len(str(child.attrs.get("href") or child.attrs.get("src") or ""))
    return found > max(_FEW_ADDRESSES, length * _MAX_ADDRESSES)


def _is_cut_off(tokens: list[Token]) -> bool:
    """Whether the parser reached its nesting limit, beyond which it drops content."""
    return any(token.level >= _MAX_NESTING - 1 for token in tokens)


def _parser_for(text: str) -> MarkdownIt:
    pipes = text.count("|")
    if pipes < 2:
        return _WITHOUT_TABLES
    widest = max(line.count("|") for line in text.split("\n"))
    return _WITH_TABLES if pipes * widest <= _MAX_TABLE_WORK else _WITHOUT_TABLES


def _inline_rule(state: StateCore) -> None:
    """Replaces the parser's own rule: text without markup costs nothing, and hostile text stays text."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        if token.children is None:
            token.children = []
        if _MARKUP.search(token.content) is None or _is_hostile(token.content):
            token.children.append(Token("text", "", 0, content=token.content))
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _is_hostile(content: str) -> bool:
    if len(content) < _MAX_BRACKETS:
        return False
    delimiters = content.count("*") + content.count("_") + content.count("~")
    return content.count("[") > _MAX_BRACKETS or delimiters > _MAX_DELIMITERS


class _Parser(MarkdownIt):
    """Accepts any address as a link: `links` decides for every channel which of them are live."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's own hook
        return True


def _parser(*, tables: bool) -> _Parser:
    parser = _Parser("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    parser.enable("strikethrough")
    if tables:
        parser.enable("table")
    parser.core.ruler.at("inline", _inline_rule)
    return parser


_WITH_TABLES = _parser(tables=True)
_WITHOUT_TABLES = _parser(tables=False)
