"""Map the names in a graph document to functions, channels, subgraphs and error types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from pipeline.domain.errors import (
    GraphError,
    MediaUnavailable,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    ParlourError,
    StorageError,
)
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import ContextT, Node, NodeResult, State, StateT
from pipeline.graph.definition.reducers import Channel, append, first, last, merge
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.documents.fields import Fields

T = TypeVar("T")

BUILT_IN_CHANNELS: Final[Mapping[str, Channel]] = MappingProxyType(
    {channel.name: channel for channel in (append, merge, last, first)}
)
BUILT_IN_ERRORS: Final[Mapping[str, type[Exception]]] = MappingProxyType(
    {
        error.__name__: error
        for error in (
            *(Exception, OSError, ConnectionError, TimeoutError, ValueError),
            *(ParlourError, StorageError, ModelError, ModelUnavailable, ModelTimeout, MediaUnavailable),
        )
    }
)


# No slots: on Python 3.11 a frozen generic with slots cannot be built as `NodeLibrary[Context](…)`.
@dataclass(frozen=True, kw_only=True)
class NodeLibrary(Generic[ContextT, StateT]):
    """Names for everything that JSON cannot hold. Built-in names are always known and cannot be replaced."""

    nodes: Mapping[str, Node[ContextT, StateT]] = field(default_factory=dict)
    kinds: Mapping[str, Callable[[Fields], NodeSpec[ContextT, StateT]]] = field(default_factory=dict)
    """Kinds of nodes: each makes a node from the parameters that the document gives it, and notes what is
    wrong with them."""
    routes: Mapping[str, Callable[[State], str | tuple[str, ...]]] = field(default_factory=dict)
    conditions: Mapping[str, Callable[[State], bool]] = field(default_factory=dict)
    subgraphs: Mapping[str, GraphStructure[ContextT, StateT]] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """In addition to `append`, `merge`, `last` and `first`."""
    errors: Mapping[str, type[Exception]] = field(default_factory=dict)
    """For `retry_on`, in addition to the common errors of Python and of the project."""

    def has_node(self, name: str) -> bool:
        """Whether a node function has that name."""
        return isinstance(self.nodes, _EveryName) or name in self.nodes


def name_in(table: Mapping[str, T], value: T, otherwise: str) -> str:
    """The first name in `table` for exactly this value, else `otherwise`."""
    return next((name for name, known in table.items() if known is value), otherwise)


def function_name(function: object) -> str:
    """A function's name; for a callable object, that of its type."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def library_for_pictures(
    kinds: Mapping[str, Callable[[Fields], NodeSpec[Any, Any]]] | None = None,
) -> NodeLibrary[Any, Any]:
    """A library that has every name, so that any document can be checked and drawn. Its functions only raise
    GraphError; `kinds` are known, and make their nodes."""
    return NodeLibrary(
        nodes=_EveryName(_node),
        kinds=_EveryName(_kind, kinds or {}),
        routes=_EveryName(_function),
        conditions=_EveryName(_function),
        subgraphs=_EveryName(_subgraph),
        channels=_EveryName(lambda name: Channel(name=name, fold=_function(name))),
        errors=_EveryName(lambda name: type("NamedError", (Exception,), {"__doc__": name})),
    )


class _EveryName(dict[str, T]):
    """Creates the value of a name on first use, and keeps it."""

    def __init__(self, make: Callable[[str], T], known: Mapping[str, T] | None = None) -> None:
        super().__init__(known or {})
        self._make = make

    def __missing__(self, name: str) -> T:
        self[name] = value = self._make(name)
        return value


def _node(name: str) -> Node[Any, Any]:
    async def unknown(_state: State, _context: object) -> NodeResult:
        raise GraphError(f"node function {name} is known by name only: this graph was read for its picture")

    unknown.__name__ = name
    return unknown


def _kind(name: str) -> Callable[[Fields], NodeSpec[Any, Any]]:
    def known_by_name(_given: Fields) -> NodeSpec[Any, Any]:
        return NodeSpec(run=_node(name))

    return known_by_name


def _function(name: str) -> Callable[..., Any]:
    def unknown(*_arguments: object) -> Any:
        raise GraphError(f"function {name} is known by name only: this graph was read for its picture")

    unknown.__name__ = name
    return unknown


def _subgraph(name: str) -> GraphStructure[Any, Any]:
    return GraphStructure(name=name, entry="elsewhere", nodes={"elsewhere": _node(name)}, edges=())
