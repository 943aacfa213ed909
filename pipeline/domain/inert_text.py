"""Make a text of a model inert.

It then has no tags, no role labels and no brackets that would end its frame.
"""

from __future__ import annotations

import re

from pipeline.domain.visible import visible_text

_LOOKED_AT = 8_000
"""Characters of an answer that are used; the model was asked for fewer."""
_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<\|?/?[A-Za-z_][^<>\n]{0,100}>|</?\|[^<>\n]{0,100}\|>")
_INST = re.compile(r"\[/?(?:INST|SYS|TOOL_OUTPUT|MEMORY)[^\]\n]{0,60}\]|<</?SYS>>", re.IGNORECASE)
_LABEL = re.compile(
    r"^(?:[ \t>#*_-]{0,20}(?:system|developer|assistant|user|human|tool|instructions?)"
    r"[*_]*[ \t]*:[*_]*[ \t]*)+",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK = re.compile(r"\n\s*\n+")
_PASSES = 5
"""Removing a tag may join the parts of another one, so tags are removed in several passes."""
_MARKS = str.maketrans("", "", "<>|:")
_BRACKETS = str.maketrans("[]", "()")


def inert(text: str) -> str:
    """`text` without anything that a model or a parser could read as markup."""
    text = visible_text(_THINKING.sub("", text[:_LOOKED_AT]))
    for _ in range(_PASSES):
        before, text = text, _LABEL.sub("", _TAG.sub("", _INST.sub("", text)))
        if text == before:
            break
    else:
        text = text.translate(_MARKS)  # such nesting is never an accident
    return _BLANK.sub("\n", text.translate(_BRACKETS)).strip()
