"""Safe expressions on edges: a small language of comparisons over a node's output and the state.

It only reads values: nothing can be called, computed, built or assigned, and no attribute of a Python
object is ever read (`output.confidence` reads a key of a mapping). Python's parser builds the tree, within
the limits below; nothing is ever passed to `eval`, `exec` or `compile`. `expression_compiler` defines what
the parts of the language mean.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.comparison import MAPPINGS, Mismatch, truth
from pipeline.graph.definition.expression_compiler import (
    Absent,
    Evaluator,
    ExpressionRefused,
    compile_condition,
)

MAX_LENGTH: Final = 500
"""Characters of one expression, and so of each string and number in it."""
MAX_NODES: Final = 100
"""Names, literals, reads and operations of one expression."""
MAX_DEPTH: Final = 20
"""Nesting levels of these, and of brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression; two are equal when their texts are."""

    text: str
    evaluator: Evaluator = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Expression:
        """The expression in `text`. Raises GraphError that says what is wrong and where."""
        if not text.strip():
            raise GraphError("the expression is empty; write a condition such as confidence >= 0.8")
        try:
            return cls(text=text, evaluator=compile_condition(_tree(text)))
        except ExpressionRefused as refused:
            raise _refusal(text.strip(), refused) from None

    @classmethod
    def parse_or_none(cls, text: str) -> Expression | None:
        """As `parse`; None where that raises."""
        try:
            return cls.parse(text)
        except GraphError:
            return None

    def evaluate(self, output: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[bool, str]:
        """Whether it holds, and a problem as readable text, empty when there is none. Raises nothing.

        Output keys shadow state keys. An absent name, key or index makes the whole expression false;
        operands that cannot be compared do too, and are reported as a problem.
        """
        try:
            return truth(self.evaluator(_root(output), _root(state))), ""
        except Absent:
            return False, ""
        except Mismatch as mismatch:
            return False, str(mismatch)
        except RecursionError:
            return False, "the values nest too deep to be compared here"


def expression_problem(text: str) -> str:
    """What is wrong with `text` as an expression, and where; empty when it is fine."""
    try:
        Expression.parse(text)
    except GraphError as error:
        return str(error)
    return ""


def _refusal(text: str, refused: ExpressionRefused) -> GraphError:
    shown = text if len(text) <= 80 else text[:79] + "…"
    where = ""
    if refused.offset is not None:
        before = text.encode()[: refused.offset].decode()
        where = f" (character {len(before) + 1})"
    return GraphError(f"the expression {shown!r} is refused: {refused}{where}")


def _root(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """A root of any mapping type, made one of the exact plain types, as only those are read."""
    return mapping if type(mapping) in MAPPINGS else MappingProxyType(mapping)


def _tree(text: str) -> ast.expr:
    _check_text(text)
    try:
        # The parser warns of unknown escapes and of `1in x`; as errors they do not depend on global filters.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionRefused(f"{error.msg} (character {error.offset or 1})") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionRefused("it cannot be read as an expression") from None
    _check_size(tree)
    return tree


_STRING: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def _check_text(text: str) -> None:
    """Refuse text that would cost the parser much time or memory, before parsing it."""
    if len(text) > MAX_LENGTH:
        raise ExpressionRefused(f"it has {len(text)} characters, and {MAX_LENGTH} are allowed")
    if any(character in text for character in "\0\r\n\f\v"):
        raise ExpressionRefused("it must be one line without control characters")
    # `_STRING` does not match triple-quoted strings correctly.
    if "'''" in text or '"""' in text:
        raise ExpressionRefused("triple quotes are not allowed")
    depth = 0
    for character in _STRING.sub("", text):
        if character in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ExpressionRefused(f"its brackets nest deeper than {MAX_DEPTH} levels")
        elif character in ")]}":
            depth -= 1


def _check_size(tree: ast.expr) -> None:
    """Refuse trees that are too large or too deep; without recursion, as it bounds the recursive compiler."""
    nodes = 0
    level: list[ast.expr] = [tree]
    for _ in range(MAX_DEPTH):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise ExpressionRefused(f"it has more than {MAX_NODES} parts")
        level = [
            child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        if not level:
            return
    raise ExpressionRefused(f"it nests deeper than {MAX_DEPTH} levels")
