"""Safe expressions on edges: a small language of comparisons, compiled to closures.

It only looks at values: nothing can be called, computed, built or assigned, and no attribute of a Python
object is ever read (`output.confidence` reads a key of a mapping). Python's parser makes the tree; nothing
here is ever handed to `eval`, `exec` or `compile`.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pipeline.domain.errors import GraphError
from pipeline.graph.plain_compare import (
    MAPPINGS,
    SEQUENCES,
    Mismatch,
    contains,
    equal,
    kind_of,
    less,
    truth,
)

MAX_LENGTH: Final = 500
"""Characters of one expression."""
MAX_NODES: Final = 100
"""Names, literals, reads and operations of one expression."""
MAX_DEPTH: Final = 20
"""How deep they, and brackets, may nest."""
MAX_INT_BITS: Final = 64

_Mapping = Mapping[str, Any]
_Evaluator = Callable[[_Mapping, _Mapping], Any]

_OUTPUT_NAMES: Final = frozenset({"output", "result"})
_STATE_NAMES: Final = frozenset({"state", "memory"})
_CONSTANT_NAMES: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression; two are equal when their texts are."""

    text: str
    evaluator: _Evaluator = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Expression:
        """The expression written in `text`. Raises GraphError that says what is wrong and where."""
        return cls(text=text, evaluator=_compile(_tree(text)))

    @classmethod
    def parse_or_none(cls, text: str) -> Expression | None:
        """As `parse`; None where that raises."""
        try:
            return cls.parse(text)
        except GraphError:
            return None

    def evaluate(self, output: _Mapping, state: _Mapping) -> tuple[bool, str]:
        """Whether it holds, and a problem in words, empty when there is none. Raises nothing.

        Output keys shadow state keys. A name, key or index that is not there makes the whole expression
        false; so do operands that do not fit each other, which is a problem.
        """
        try:
            return truth(self.evaluator(_root(output), _root(state))), ""
        except _Absent:
            return False, ""
        except Mismatch as mismatch:
            return False, str(mismatch)


def expression_problem(text: str) -> str:
    """What is wrong with `text` as an expression, and where; empty when it is fine."""
    try:
        Expression.parse(text)
    except GraphError as error:
        return str(error)
    return ""


class _Absent(Exception):
    """A name, key or index that was asked for is not there."""


def _root(mapping: _Mapping) -> _Mapping:
    return mapping if type(mapping) in MAPPINGS else MappingProxyType(mapping)


# From text to a tree within the limits.

_STRING: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def _tree(text: str) -> ast.expr:
    _check_text(text)
    try:
        # The parser warns of unknown escapes and of `1in x`; as errors they do not hang on global filters.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _refusal(text, f"{error.msg} at character {error.offset or 1}") from None
    except (ValueError, RecursionError, MemoryError):
        raise _refusal(text, "it cannot be read as an expression") from None
    _check_size(text, tree)
    return tree


def _check_text(text: str) -> None:
    """Refuses what is costly or dangerous for the parser itself, before the parser sees it."""
    if not text.strip():
        raise GraphError("the expression is empty; write a condition such as confidence >= 0.8")
    if len(text) > MAX_LENGTH:
        raise _refusal(text, f"it has {len(text)} characters, and {MAX_LENGTH} are allowed")
    if any(character in text for character in "\0\r\n\f\v"):
        raise _refusal(text, "it must be one line without control characters")
    depth = 0
    for character in _STRING.sub("", text):
        if character in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _refusal(text, f"its brackets nest deeper than {MAX_DEPTH} levels")
        elif character in ")]}":
            depth -= 1


def _check_size(text: str, tree: ast.expr) -> None:
    """Counts without recursion, so that the recursive compilation is bounded."""
    nodes = 0
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise _refusal(text, f"it has more than {MAX_NODES} parts")
        level = [
            child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
        ]
        if not level:
            return
    raise _refusal(text, f"it nests deeper than {MAX_DEPTH} levels")


def _refusal(text: str, why: str) -> GraphError:
    shown = text.strip()
    return GraphError(f"the expression {shown[:80] + '…' if len(shown) > 80 else shown!r} is refused: {why}")


def _refuse_node(node: ast.expr, what: str) -> GraphError:
    return GraphError(f"the expression is refused: {what} at character {node.col_offset + 1}")


# From the tree to closures.


def _compile(node: ast.expr) -> _Evaluator:
    compiler = _COMPILERS.get(type(node))
    if compiler is None:
        what = _REFUSED.get(type(node), f"{type(node).__name__} is not part of the language,")
        raise _refuse_node(node, what)
    return compiler(node)


def _constant(node: ast.Constant) -> _Evaluator:
    value = _literal(node)
    return lambda _output, _state: value


def _literal(node: ast.Constant) -> Any:
    value = node.value
    kind = type(value)
    if kind is int and value.bit_length() > MAX_INT_BITS:
        raise _refuse_node(node, f"an integer of more than {MAX_INT_BITS} bits")
    if kind is float and not math.isfinite(value):
        raise _refuse_node(node, "a number that is not finite")
    if kind not in {str, int, float, bool, type(None)}:
        raise _refuse_node(node, f"a {kind.__name__} literal is not part of the language,")
    return value


def _name(node: ast.Name) -> _Evaluator:
    name = node.id
    if name in _CONSTANT_NAMES:
        value = _CONSTANT_NAMES[name]
        return lambda _output, _state: value
    if name in _OUTPUT_NAMES:
        return lambda output, _state: output
    if name in _STATE_NAMES:
        return lambda _output, state: state
    _check_key(node, name)

    def read(output: _Mapping, state: _Mapping) -> Any:
        if name in output:
            return output[name]
        if name in state:
            return state[name]
        raise _Absent

    return read


def _attribute(node: ast.Attribute) -> _Evaluator:
    if not isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
        raise _refuse_node(node, "a dot behind something that is not a name")
    _check_key(node, node.attr)
    return _reader(_compile(node.value), node.attr)


def _check_key(node: ast.expr, name: str) -> None:
    if name.startswith("_"):
        raise _refuse_node(node, f"{name}: names that begin with an underscore cannot be read,")


def _subscript(node: ast.Subscript) -> _Evaluator:
    index: ast.expr = node.slice
    negative = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
    if isinstance(index, ast.UnaryOp) and negative:
        index = index.operand
    if not isinstance(index, ast.Constant) or type(index.value) not in ({int} if negative else {int, str}):
        raise _refuse_node(node.slice, "a subscript that is not a literal string or whole number,")
    key = _literal(index)
    return _reader(_compile(node.value), -key if negative else key)


def _reader(base: _Evaluator, key: str | int) -> _Evaluator:
    def read(output: _Mapping, state: _Mapping) -> Any:
        value = base(output, state)
        if type(value) in MAPPINGS:
            if key in value:
                return value[key]
            raise _Absent
        if type(key) is int and (type(value) in SEQUENCES or type(value) is str):
            if -len(value) <= key < len(value):
                return value[key]
            raise _Absent
        raise Mismatch(f"{kind_of(value)} has no {key!r}")

    return read


def _sequence(node: ast.List | ast.Tuple) -> _Evaluator:
    items = [_compile(item) for item in node.elts]
    if all(isinstance(item, ast.Constant) for item in node.elts):
        fixed = tuple([item({}, {}) for item in items])
        return lambda _output, _state: fixed
    return lambda output, state: tuple([item(output, state) for item in items])


def _unary(node: ast.UnaryOp) -> _Evaluator:
    if isinstance(node.op, ast.Not):
        inner = _compile(node.operand)
        return lambda output, state: not truth(inner(output, state))
    if not isinstance(node.op, ast.USub):
        raise _refuse_node(node, "arithmetic is not part of the language,")
    if isinstance(node.operand, ast.Constant):
        if type(node.operand.value) not in {int, float}:
            raise _refuse_node(node, "a minus sign before something that is not a number")
        negated = -_literal(node.operand)
        return lambda _output, _state: negated
    operand = _compile(node.operand)

    def negative(output: _Mapping, state: _Mapping) -> Any:
        value = operand(output, state)
        if type(value) is int or type(value) is float:
            return -value
        raise Mismatch(f"{kind_of(value)} has no negative")

    return negative


def _boolean(node: ast.BoolOp) -> _Evaluator:
    parts = [_compile(part) for part in node.values]
    stops_at = isinstance(node.op, ast.Or)

    def combine(output: _Mapping, state: _Mapping) -> bool:
        for part in parts:
            if truth(part(output, state)) is stops_at:
                return stops_at
        return not stops_at

    return combine


def _compare(node: ast.Compare) -> _Evaluator:
    first = _compile(node.left)
    steps = []
    for operator, operand in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot) and not _is_singleton(operand):
            raise _refuse_node(operand, "`is` compares with None, True and False only,")
        steps.append((_OPERATORS[type(operator)], _compile(operand)))
    if len(steps) == 1:
        holds, second = steps[0]
        return lambda output, state: holds(first(output, state), second(output, state))

    def chain(output: _Mapping, state: _Mapping) -> bool:
        left = first(output, state)
        for holds, operand in steps:
            right = operand(output, state)
            if not holds(left, right):
                return False
            left = right
        return True

    return chain


def _is_singleton(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _CONSTANT_NAMES
    return isinstance(node, ast.Constant) and (node.value is None or type(node.value) is bool)


_OPERATORS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: equal,
    ast.NotEq: lambda left, right: not equal(left, right),
    ast.Lt: less,
    ast.LtE: lambda left, right: not less(right, left),
    ast.Gt: lambda left, right: less(right, left),
    ast.GtE: lambda left, right: not less(left, right),
    ast.In: lambda item, whole: contains(whole, item),
    ast.NotIn: lambda item, whole: not contains(whole, item),
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}

_COMPILERS: Final[Mapping[type[ast.expr], Callable[[Any], _Evaluator]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
}

_REFUSED: Final[Mapping[type[ast.expr], str]] = {
    ast.Call: "calls are not part of the language; a call",
    ast.BinOp: "arithmetic is not part of the language,",
    ast.IfExp: "`if … else` is not part of the language,",
    ast.Lambda: "lambda is not part of the language,",
    ast.JoinedStr: "f-strings are not part of the language,",
    ast.Dict: "mapping literals are not part of the language,",
    ast.Set: "set literals are not part of the language,",
    ast.NamedExpr: "assignments are not part of the language,",
    ast.Starred: "the star is not part of the language,",
}
