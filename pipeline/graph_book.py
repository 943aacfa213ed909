"""The graphs of this installation by name, and those of documents by their file.

Not here: which agent runs which graph; the gateway's configuration says so.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pipeline.domain.errors import ConfigurationError, GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.graph.documents.json_text import MAX_BYTES, parsed_json
from pipeline.nodes.document_graph import document_graph
from pipeline.nodes.kinds import NODE_KINDS, Kind
from pipeline.plugins import Plugin, installed
from pipeline.runtime.context import RunContext
from pipeline.topologies import ALIASES, NO_SUBGRAPHS, shipped_graphs

if TYPE_CHECKING:
    from pipeline.playbooks.public_run import RunDocument
    from pipeline.workflows.document import Workflow

SAVED: Final = "saved:"
"""Before the name of a workflow that the host has saved: `saved:letters`, or `saved:letters@3` for one of its
versions."""
MAX_SAVED_NAME: Final = 60
SAVED_FORM: Final = (
    f"a name of at most {MAX_SAVED_NAME} letters, digits, spaces, _ and -, and @ with a version if wanted"
)
_SAVED_NAME: Final = re.compile(r"\w(?:[\w -]*\w)?")
_DOCUMENT: Final = ".json"
_GRAPH_FIELDS: Final = frozenset({"entry", "entry_node"})
"""Fields that only a graph document has."""


class SavedDocuments(Protocol):
    """The port to the workflow documents that the host has saved."""

    def text(self, name: str, version: int | None) -> str | None:
        """The text of a version, by default of the newest one that can run; None if there is none. Raises
        StorageError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedName:
    """The name of a saved workflow, with a version or without."""

    name: str
    version: int | None = None

    def __str__(self) -> str:
        return f"{SAVED}{self.name}" if self.version is None else f"{SAVED}{self.name}@{self.version}"


class GraphBook:
    """The shipped graphs, and those that were added. Graphs are built when they are asked for."""

    def __init__(
        self,
        added: Mapping[str, Callable[[], GraphSpec[RunContext]]] | None = None,
        kinds: Mapping[str, Kind] | None = None,
        saved: SavedDocuments | None = None,
    ) -> None:
        """`kinds` are further kinds of nodes for documents, `saved` the workflows that names can mean. A
        shipped name cannot be replaced."""
        self._added, self._saved = added, saved
        shipped = shipped_graphs()
        known = {**(added or {}), **shipped}
        self.aliases: Mapping[str, str] = {
            alias: name for alias, name in ALIASES.items() if name in shipped and alias not in shipped
        }
        """Other names of shipped graphs, and the graph of each."""
        self._graphs = {**known, **{alias: shipped[name] for alias, name in self.aliases.items()}}
        self.kinds: Mapping[str, Kind] = {**(kinds or {}), **NODE_KINDS}
        """The kinds of nodes that documents can use."""

    def with_saved(self, saved: SavedDocuments) -> GraphBook:
        """This book, with the host's saved workflows."""
        return GraphBook(self._added, self.kinds, saved)

    @property
    def names(self) -> tuple[str, ...]:
        """The graphs that have a name, the shipped ones first, without their aliases."""
        shipped = shipped_graphs()
        return (*shipped, *(name for name in self._graphs if name not in {*shipped, *self.aliases}))

    def find(self, name: str) -> GraphSpec[RunContext] | None:
        """The graph of that name or alias; None if there is none."""
        build = self._graphs.get(name)
        return None if build is None else build()

    def open(self, name_or_file: str) -> GraphSpec[RunContext]:
        """The graph of that name, of that file if it ends in `.json`, or of that saved workflow if it begins
        with `saved:`. Raises ConfigurationError with all mistakes, each line with the document's name."""
        if name_or_file.startswith(SAVED):
            return self._saved_graph(name_or_file)
        if is_document(name_or_file):
            return self.document(Path(name_or_file))
        found = self.find(name_or_file)
        if found is None:
            known = ", ".join(self.names)
            raise ConfigurationError(
                # Without the name: a configuration may have a secret in its place.
                f"there is no graph of this name; there are: {known}, and files that end in .json"
            )
        return found

    def workflow(self, name_or_file: str) -> RunDocument | None:
        """The workflow or playbook of that file, or the saved workflow; None for another name, for another
        kind of document, and for a playbook that the agent starts. Raises ConfigurationError as `open`."""
        if name_or_file.startswith(SAVED):
            text, saved = self._saved_text(name_or_file)
            return saved_workflow(text, saved)
        if not is_document(name_or_file):
            return None
        path = Path(name_or_file)
        text = document_text(path)
        try:
            if has_playbook_text(text):
                from pipeline.playbooks.reading import read_playbook  # noqa: PLC0415 - as below

                playbook = read_playbook(text, workflow_name(path), beside(path))
                return playbook if playbook.starts == "message" else None
            if has_workflow_shape(text):
                from pipeline.workflows.reading import read_workflow  # noqa: PLC0415 - most have none

                return read_workflow(text, workflow_name(path))
        except GraphError as error:
            raise in_file(path, error) from error
        return None

    def document(self, path: Path) -> GraphSpec[RunContext]:
        """The graph that the JSON document in a file describes: a graph document, a workflow or a playbook.
        Raises ConfigurationError as `open`."""
        text = document_text(path)
        try:
            if has_playbook_text(text):
                from pipeline.playbooks.compiling import playbook_graph  # noqa: PLC0415 - as below

                return playbook_graph(text, workflow_name(path), beside(path))
            if has_workflow_shape(text):
                from pipeline.workflows.compiling import workflow_graph  # noqa: PLC0415 - most have none

                return workflow_graph(text, workflow_name(path))
            graphs = {name: build() for name, build in self._graphs.items() if name not in NO_SUBGRAPHS}
            return document_graph(text, subgraphs=graphs, kinds=self.kinds)
        except GraphError as error:
            raise in_file(path, error) from error

    def _saved_graph(self, name: str) -> GraphSpec[RunContext]:
        return saved_graph(*self._saved_text(name))

    def _saved_text(self, name: str) -> tuple[str, SavedName]:
        wanted = saved_name(name)
        if wanted is None:
            raise ConfigurationError(f"{SAVED} is followed by {SAVED_FORM}")
        text = None if self._saved is None else self._saved.text(wanted.name, wanted.version)
        if text is None:
            raise ConfigurationError(
                f"{wanted}: no such workflow is saved that can run; `parlour workflow list` shows them"
            )
        return text, wanted


@functools.cache
def installed_graphs() -> GraphBook:
    """The shipped graphs and those of installed plug-ins. Loads the plug-ins on the first call."""
    return GraphBook(
        {one.name: one.value for one in graph_plugins() if not one.problem},
        {one.name: one.value for one in kind_plugins() if not one.problem},
    )


@functools.cache
def graph_plugins() -> tuple[Plugin, ...]:
    """The plug-ins with a graph; the value of each is a function that returns it."""
    return installed("parlour.graphs", _checked_graph)


@functools.cache
def kind_plugins() -> tuple[Plugin, ...]:
    """The plug-ins with a kind of node for documents."""
    return installed("parlour.nodes", _checked_kind)


def _checked_graph(name: str, value: Any) -> Callable[[], GraphSpec[RunContext]]:
    """A graph, or a function that returns one; it is built once as a check. Raises TypeError and
    ValueError."""
    graph = value() if callable(value) and not isinstance(value, GraphSpec) else value
    if not isinstance(graph, GraphSpec):
        raise TypeError(f"expected a GraphSpec or a function that returns one, not {type(graph).__name__}")
    if name in shipped_graphs() or name in ALIASES:
        raise ValueError(f"{name} is the name of a shipped graph")
    return lambda: graph


def _checked_kind(name: str, value: Any) -> Kind:
    """A function from parameters to a node. Raises TypeError and ValueError."""
    if not callable(value):
        raise TypeError(f"expected a function from Fields to a NodeSpec, not {type(value).__name__}")
    if name in NODE_KINDS:
        raise ValueError(f"{name} is the name of a shipped kind of node")

    def make(given: Fields) -> NodeSpec[RunContext]:
        node = value(given)
        if not isinstance(node, NodeSpec):
            given.note("", f"the kind {name} made no NodeSpec of it")
            return NodeSpec()
        return node

    return make


def saved_name(graph: str) -> SavedName | None:
    """The saved workflow that a graph's name means; None if it means none."""
    name, at, number = graph.removeprefix(SAVED).partition("@")
    is_version = not at or (number.isascii() and number.isdigit() and 0 < int(number[:9]) == int(number))
    if not graph.startswith(SAVED) or not is_version or not is_saved_name(name):
        return None
    return SavedName(name=name, version=int(number) if at else None)


def is_saved_name(name: str) -> bool:
    """Whether a workflow can be saved under this name."""
    return len(name) <= MAX_SAVED_NAME and _SAVED_NAME.fullmatch(name) is not None


def saved_graph(text: str, saved: SavedName) -> GraphSpec[RunContext]:
    """The graph of a saved document. Raises ConfigurationError with all its mistakes."""
    from pipeline.workflows.compiling import workflow_graph  # noqa: PLC0415 - most have none

    try:
        return workflow_graph(text, saved.name)
    except GraphError as error:
        raise in_file(saved, error) from error


def saved_workflow(text: str, saved: SavedName) -> Workflow:
    """A saved document. Raises ConfigurationError with all its mistakes."""
    from pipeline.workflows.reading import read_workflow  # noqa: PLC0415 - most have none

    try:
        return read_workflow(text, saved.name)
    except GraphError as error:
        raise in_file(saved, error) from error


def graph_of(run: RunDocument) -> GraphSpec[RunContext]:
    """The graph of a workflow or a playbook that was read."""
    from pipeline.playbooks import compiling as playbooks  # noqa: PLC0415 - most have none
    from pipeline.workflows import compiling as workflows  # noqa: PLC0415 - most have none
    from pipeline.workflows.document import Workflow  # noqa: PLC0415 - most have none

    return workflows.compiled(run) if isinstance(run, Workflow) else playbooks.compiled(run)


def is_document(name_or_file: str) -> bool:
    """Whether a graph is given by its file."""
    return name_or_file.endswith(_DOCUMENT)


def has_workflow_shape(text: str) -> bool:
    """Whether a JSON text is a workflow document, not a graph document: its nodes have a `type`, or it has
    `connections`. False for a text that is no JSON."""
    try:
        document = parsed_json(text, "the document")
    except GraphError:
        return False
    if not isinstance(document, dict) or not document.keys().isdisjoint(_GRAPH_FIELDS):
        return False
    nodes = document.get("nodes")
    typed = isinstance(nodes, list) and any(isinstance(node, dict) and "type" in node for node in nodes)
    return typed or "connections" in document


def has_playbook_text(text: str) -> bool:
    """Whether a JSON text is a playbook: one of its nodes has a `subtype`. False for a text that is no
    JSON."""
    if '"subtype"' not in text:
        return False
    try:
        document = parsed_json(text, "the document")
    except GraphError:
        return False
    nodes = document.get("nodes") if isinstance(document, dict) else None
    return isinstance(nodes, list) and any(isinstance(node, dict) and "subtype" in node for node in nodes)


def is_compiled(text: str) -> bool:
    """Whether the graph of a JSON text is made of another form: of a workflow or a playbook."""
    return has_playbook_text(text) or has_workflow_shape(text)


def beside(path: Path) -> Callable[[str], str]:
    """Reads the documents beside a file, or in folders below its own."""
    folder = path.resolve().parent

    def read(file: str) -> str:
        found = (folder / file).resolve()
        if not found.is_relative_to(folder):
            raise ConfigurationError("is outside of the folder of the first document")
        try:
            return document_text(found)
        except ConfigurationError as error:
            raise ConfigurationError(str(error).removeprefix(f"{found}: ")) from error

    return read


def workflow_name(path: Path) -> str:
    """The name of a workflow or playbook whose document has none: that of its file."""
    name = path.name.removesuffix(_DOCUMENT)
    return name.removesuffix(".workflow").removesuffix(".playbook") or "workflow"


def document_text(path: Path) -> str:
    """The text of a document's file. Raises ConfigurationError that says why it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(f"{path}: there is no such file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"{path}: cannot be read: {reason}") from error
    if len(content) > MAX_BYTES:
        raise ConfigurationError(
            f"{path}: is larger than {MAX_BYTES} bytes, the most a graph document may have"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not UTF-8 text (byte {error.start})") from error


def in_file(place: Path | SavedName, error: GraphError) -> ConfigurationError:
    """The mistakes of a document, each with the name of the file or of the saved workflow."""
    return ConfigurationError("\n".join(f"{place}: {line}" for line in str(error).splitlines()))
