"""`parlour graph …`: print graphs as diagrams or documents. Runs none of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.documents.library import library_for_pictures
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.documents.reader import MAX_BYTES, graph_document, read_graph
from pipeline.topologies import shipped_graphs


def graph_list() -> int:
    """Print the names of the graphs that come with Parlour. Exit code 0."""
    for name in shipped_graphs():
        write_out(f"{name}\n")
    return 0


def graph_show(name_or_file: str, *, as_json: bool) -> int:
    """Print a shipped graph, or the one in a JSON file, as mermaid or as a graph document. Exit code 0.

    Raises ConfigurationError when there is no such graph, or with all mistakes in its file.
    """
    library = library_for_pictures()
    shipped = shipped_graphs().get(name_or_file)
    graph: GraphSpec[Any, Any] = shipped() if shipped else read_graph_file(name_or_file)
    if as_json:
        write_out(json.dumps(graph_document(graph, library), indent=2, ensure_ascii=False) + "\n")
    else:
        write_out(mermaid(graph))
    return 0


def read_graph_file(name: str) -> GraphSpec[Any, Any]:
    """The graph in a JSON file, for display only: its functions are known by name only.

    Raises ConfigurationError as `graph_show` does.
    """
    path = Path(name)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        known = ", ".join(shipped_graphs())
        raise ConfigurationError(
            f"{name}: there is no such file, and no shipped graph of that name; shipped: {known}"
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{name}: cannot be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise ConfigurationError(
            f"{name}: is larger than {MAX_BYTES} bytes, the most a graph document may have"
        )
    try:
        return read_graph(content.decode("utf-8-sig"), library_for_pictures())
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name}: is not UTF-8 text (byte {error.start})") from error
    except GraphError as error:
        lines = (f"{name}: {line}" for line in str(error).splitlines())
        raise ConfigurationError("\n".join(lines)) from error


def write_out(text: str) -> None:
    """Write `text` to the terminal in its encoding: labels may hold any character."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
