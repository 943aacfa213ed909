"""Read one content of an MCP server's result: as text for the model, or as a file for people."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote, urlsplit

from pipeline.tools.tool import ToolFile

_NAME_CHARS = 200


def read_block(block: Any) -> tuple[str, ToolFile | None]:
    """The content's text and its file; one of them is empty. A content that cannot be read is named in the
    text. Resources that are only linked are not fetched."""
    mime = str(getattr(block, "mime_type", None) or "")
    match block.type:
        case "text":
            return str(block.text), None
        case "image" | "audio":
            return _decoded(block.data, block.type, mime)
        case "resource" if getattr(block.resource, "text", None) is not None:
            return str(block.resource.text), None
        case "resource" if getattr(block.resource, "blob", None) is not None:
            resource = block.resource
            return _decoded(resource.blob, _name_of(str(resource.uri)), str(resource.mime_type or ""))
        case "resource_link":
            return f"[{block.name}: {block.uri}]", None
        case _:
            return f"[{mime or 'something'}, which cannot be shown here]", None


def _decoded(data: Any, name: str, mime: str) -> tuple[str, ToolFile | None]:
    try:
        content = base64.b64decode(str(data), validate=True)
    except (binascii.Error, ValueError):
        return f"[{mime or 'a file'}, which cannot be read: it is not base64]", None
    return "", ToolFile(data=content, name=name, mime=mime)


def _name_of(uri: str) -> str:
    """The last part of the address's path."""
    try:
        path = urlsplit(uri).path
    except ValueError:
        return ""
    return unquote(path.rstrip("/").rpartition("/")[2])[:_NAME_CHARS]
