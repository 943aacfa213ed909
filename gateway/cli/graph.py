"""`parlour graph`: list graphs, and print them as diagrams or documents. Runs none of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.documents.library import NodeLibrary, library_for_pictures
from pipeline.graph.documents.mermaid import mermaid
from pipeline.graph.documents.reader import graph_document, read_graph
from pipeline.graph_book import document_text, in_file, installed_graphs, is_compiled


def graph_list() -> int:
    """Print the names of the installed graphs, with their aliases. Exit code 0."""
    book = installed_graphs()
    for name in book.names:
        also = ", ".join(alias for alias, known in book.aliases.items() if known == name)
        write_out(f"{name} (also {also})\n" if also else f"{name}\n")
    return 0


def graph_show(name_or_file: str, *, as_json: bool) -> int:
    """Print an installed graph, or the one in a JSON file, as mermaid or as a graph document. Exit code 0.

    Raises ConfigurationError when there is no such graph, or with all mistakes in its file.
    """
    graph: GraphSpec[Any, Any] = installed_graphs().find(name_or_file) or read_graph_file(name_or_file)
    if as_json:
        write_out(json.dumps(graph_document(graph, _library()), indent=2, ensure_ascii=False) + "\n")
    else:
        write_out(mermaid(graph))
    return 0


def read_graph_file(name: str) -> GraphSpec[Any, Any]:
    """The graph in a JSON file, for display only: functions that Parlour does not have are known by name
    only.

    Raises ConfigurationError as `graph_show` does.
    """
    path = Path(name)
    try:
        text = document_text(path)
        return installed_graphs().document(path) if is_compiled(text) else read_graph(text, _library())
    except ConfigurationError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        known = ", ".join(installed_graphs().names)
        raise ConfigurationError(f"{error}, and no graph of that name; there are: {known}") from error
    except GraphError as error:
        raise in_file(path, error) from error


def _library() -> NodeLibrary[Any, Any]:
    return library_for_pictures(installed_graphs().kinds)


def complain(words: str) -> int:
    """Write to the error output why nothing was done; the exit code for that."""
    sys.stderr.write(f"parlour: {words}\n")
    return 1


def write_out(text: str) -> None:
    """Write `text` to the terminal in its encoding: labels may hold any character."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
