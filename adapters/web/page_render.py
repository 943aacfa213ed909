"""Write the texts of one language into the page's files: index.html, the web manifest and the service worker.

Every text is escaped: a text from a file is shown as text and never as markup. Not the responses (`pages`).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from adapters.web.text_tables import IN_EDITOR, IN_PAGE, TextTable

STATIC: Final = "/static/"
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")
_KEYCAP = re.compile(r"\[([^\[\]]+)\]")
_RIGHT_TO_LEFT = frozenset(("ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"))


def direction_of(tag: str) -> str:
    """`rtl` for a language that is written from right to left, else `ltr`."""
    return "rtl" if tag.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"


def render_index(template: str, table: TextTable, tables: Iterable[TextTable], version: str) -> str:
    """index.html in one language; its files are those of `version`. Raises KeyError for an unknown text."""

    def filled(place: re.Match[str]) -> str:
        key = place.group(1)
        match key:
            case "lang":
                return table.tag
            case "dir":
                return direction_of(table.tag)
            case "texts":
                return _data_block(table, tables)
        words = html.escape(str(table.texts[key]))
        return _KEYCAP.sub(r"<kbd>\1</kbd>", words) if key.startswith(IN_PAGE) else words

    return _PLACE.sub(filled, template).replace(f'"{STATIC}', f'"{STATIC}{version}/')


def render_manifest(template: str, table: TextTable) -> str:
    """The web manifest in one language."""
    manifest: dict[str, Any] = json.loads(template)
    manifest |= {
        "lang": table.tag,
        "dir": direction_of(table.tag),
        "description": table.texts["page.description"],
    }
    return json.dumps(manifest, ensure_ascii=False)


def render_editor_texts(table: TextTable) -> str:
    """The texts of the workflow editor, as JSON: few people need them, so the page is without them."""
    texts: Mapping[str, Any] = {key: text for key, text in table.texts.items() if key.startswith(IN_EDITOR)}
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"), default=dict)


def render_worker(template: str, version: str, names: Iterable[str]) -> str:
    """The service worker that stores the files `names` of `version`."""
    return template.replace("{{version}}", version).replace("{{files}}", " ".join(names))


def _data_block(table: TextTable, tables: Iterable[TextTable]) -> str:
    """What texts.js reads: JSON in which nothing can end the element that it is in."""
    apart = (IN_PAGE, IN_EDITOR)
    texts: Mapping[str, Any] = {key: text for key, text in table.texts.items() if not key.startswith(apart)}
    block = {
        "language": table.tag,
        "languages": [(one.tag, one.name) for one in tables],
        "texts": texts,
    }
    packed = json.dumps(block, ensure_ascii=False, separators=(",", ":"), default=dict)
    return packed.replace("<", "\\u003c")
