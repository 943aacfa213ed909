"""Guess a text's content type from its form, well enough to remind a model of an earlier result."""

from __future__ import annotations

import re

_LOOKED_AT = 2_000
"""Characters at the beginning that are examined."""
_ERROR = re.compile(
    r"\s*(?:traceback \(most recent|(?:\w+\.)*\w*(?:error|exception)\b\s*[:(]|failed:)", re.IGNORECASE
)
_HTML = re.compile(
    r"\s*(?:<!doctype html|<html\b|<(?:head|body|div|table|p|ul|h[1-6]|span)\b[^>]*>)", re.IGNORECASE
)
_XML = re.compile(r"\s*<(?:\?xml\b|[a-z][\w:.-]*(?:\s[^>]*)?>)", re.IGNORECASE)
_JSON = re.compile(r"""\s*(?:\{\s*(?:"|\})|\[\s*(?:[{\["\d\]-]|true\b|false\b|null\b))""")
_MARKDOWN = re.compile(
    r"^(?:#{1,6} \S|```|[ \t]*[-*] \S.*\n[ \t]*[-*] \S|\|.+\|[ \t]*\n\|[ \t:|-]+\|)"
    r"|\[[^\[\]\n]{1,200}\]\(\S{1,500}?\)",
    re.MULTILINE,
)
_LANGUAGES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (language, re.compile(pattern, re.MULTILINE))
    for language, pattern in (
        ("Python", r"^(?:async )?def \w+\(.*|^class \w+.*:\s*$|^from [\w.]+ import |^import [\w.]+\s*$"),
        ("Go", r"^package \w+\s*$|^func (?:\(\w+ \*?\w+\) )?\w+\("),
        ("Rust", r"^(?:pub )?(?:fn|impl|struct|enum|mod) \w+.*[{;(]|^use [\w:]+(?:::\{.*\})?;"),
        (
            "Java",
            r"^(?:public|private|protected) (?:static |final |abstract )*(?:class|interface|void|\w+) \w+",
        ),
        ("TypeScript", r"^(?:export )?(?:interface|type) \w+.*[={]\s*$"),
        (
            "JavaScript",
            r"^(?:export |async )*function\s*\w*\(|^(?:const|let|var) \w+\s*=|=>\s*\{|^import .+ from ['\"]",
        ),
        ("C", r"^#include\s*[<\"]|^(?:static |const )*(?:int|void|char|double|float) \*?\w+\(.*\)\s*\{?"),
        ("shell", r"\A#!.*\b(?:ba|z|da)?sh\b"),
        ("SQL", r"^(?:CREATE TABLE|INSERT INTO|UPDATE \w+ SET|SELECT .+ FROM)\b"),
        ("CSS", r"^[^\n{}]{1,200}\{\n[ \t]+[\w-]+: "),
    )
)


def guess_content_type(text: str) -> str:
    """One of: an error, JSON, HTML, XML, Markdown, CSV, "LANGUAGE source code", plain text."""
    start = text[:_LOOKED_AT]
    if _ERROR.match(start):
        return "an error"
    if _JSON.match(start):
        return "JSON"
    if _HTML.match(start):
        return "HTML"
    if _XML.match(start):
        return "XML"
    code = next((language for language, pattern in _LANGUAGES if pattern.search(start)), "")
    if code and not start.lstrip().startswith(("# ", "## ")):
        return f"{code} source code"
    if _MARKDOWN.search(start):
        return "Markdown"
    if code:
        return f"{code} source code"
    return "CSV" if _is_table(start) else "plain text"


def _is_table(start: str) -> bool:
    """At least two lines, with the same number of one separator in each."""
    lines = [line for line in start.splitlines()[:20] if line.strip()]
    if len(start) == _LOOKED_AT:
        lines = lines[:-1]  # it may be cut
    if len(lines) < 2:  # a head and a row
        return False
    return any(
        lines[0].count(mark) > 0 and len({line.count(mark) for line in lines}) == 1
        for mark in (",", ";", "\t")
    )
