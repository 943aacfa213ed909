"""Compile a syntax tree of the safe expression language to nested closures, once per edge.

Refuses every node type that is not listed in `_COMPILERS`. The caller bounds the tree's size.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from pipeline.graph.definition.comparison import (
    MAPPINGS,
    SEQUENCES,
    Mismatch,
    at_most,
    contains,
    equal,
    kind_of,
    less,
    truth,
)

MAX_INT_BITS: Final = 64

Evaluator = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]
"""(output, state) -> the value. Raises Absent and Mismatch."""

_OUTPUT_NAMES: Final = frozenset({"output", "result"})
_STATE_NAMES: Final = frozenset({"state", "memory"})
_CONSTANT_NAMES: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}


class ExpressionRefused(Exception):
    """The text is not an expression of the language; the message says why.

    `offset` is the position in bytes of the UTF-8 text, as in Python's syntax trees; None if unknown.
    """

    def __init__(self, why: str, offset: int | None = None) -> None:
        super().__init__(why)
        self.offset = offset


class Absent(Exception):
    """A name, key or index is absent."""


def compile_tree(node: ast.expr) -> Evaluator:
    """The closure that evaluates `node`. Raises ExpressionRefused for anything outside the language."""
    compiler = _COMPILERS.get(type(node))
    if compiler is None:
        raise _refused(node, _REFUSED.get(type(node), f"{type(node).__name__}"))
    return compiler(node)


def compile_condition(node: ast.expr) -> Evaluator:
    """As `compile_tree`, for a condition. Refuses a list: it would always be true, and one comma too many
    turns any condition into a list."""
    if isinstance(node, ast.List | ast.Tuple):
        raise _refused(node, "a list as a condition, which a comma makes,")
    return compile_tree(node)


def _refused(node: ast.expr, what: str) -> ExpressionRefused:
    return ExpressionRefused(f"{what} is not allowed", node.col_offset)


def _constant(node: ast.Constant) -> Evaluator:
    value = _literal(node)
    return lambda _output, _state: value


def _literal(node: ast.Constant) -> Any:
    value: Any = node.value
    kind = type(value)
    if kind is int and value.bit_length() > MAX_INT_BITS:
        raise _refused(node, f"a whole number of more than {MAX_INT_BITS} bits")
    if kind is float and not math.isfinite(value):
        raise _refused(node, "a number that is not finite")
    if kind not in {str, int, float, bool, type(None)}:
        raise _refused(node, f"the {kind.__name__} literal")
    return value


def _name(node: ast.Name) -> Evaluator:
    name = node.id
    if name in _CONSTANT_NAMES:
        value = _CONSTANT_NAMES[name]
        return lambda _output, _state: value
    if name in _OUTPUT_NAMES:
        return lambda output, _state: output
    if name in _STATE_NAMES:
        return lambda _output, state: state
    _check_key(node, name)

    def read(output: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
        if name in output:
            return output[name]
        if name in state:
            return state[name]
        raise Absent

    return read


def _attribute(node: ast.Attribute) -> Evaluator:
    if not isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
        raise _refused(node, "a dot behind something that is not a name")
    _check_key(node, node.attr)
    return _reader(compile_tree(node.value), node.attr)


def _check_key(node: ast.expr, name: str) -> None:
    if name.startswith("_"):
        raise _refused(node, f"{name}, a name that begins with an underscore,")


def _subscript(node: ast.Subscript) -> Evaluator:
    index: ast.expr = node.slice
    sign = 1
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index, sign = index.operand, -1
    key = _literal(index) if isinstance(index, ast.Constant) else None
    if type(key) is int:
        return _reader(compile_tree(node.value), sign * key)
    if type(key) is str and sign == 1:
        return _reader(compile_tree(node.value), key)
    raise _refused(node.slice, "a subscript that is neither a string nor a whole number")


def _reader(base: Evaluator, key: str | int) -> Evaluator:
    def read(output: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
        value = base(output, state)
        kind = type(value)
        if kind in MAPPINGS:
            if key in value:
                return value[key]
            raise Absent
        if type(key) is int and (kind in SEQUENCES or kind is str):
            if -len(value) <= key < len(value):
                return value[key]
            raise Absent
        raise Mismatch(f"{kind_of(value)} has no {key!r}")

    return read


def _sequence(node: ast.List | ast.Tuple) -> Evaluator:
    items = [compile_tree(item) for item in node.elts]
    if all(isinstance(item, ast.Constant) for item in node.elts):
        fixed = tuple([item({}, {}) for item in items])
        return lambda _output, _state: fixed
    return lambda output, state: tuple([item(output, state) for item in items])


def _unary(node: ast.UnaryOp) -> Evaluator:
    if isinstance(node.op, ast.Not):
        inner = compile_condition(node.operand)
        return lambda output, state: not truth(inner(output, state))
    if not isinstance(node.op, ast.USub):
        raise _refused(node, "arithmetic")
    if isinstance(node.operand, ast.Constant):
        literal = _literal(node.operand)
        if type(literal) is not int and type(literal) is not float:
            raise _refused(node, "a minus sign before something that is not a number")
        return lambda _output, _state: -literal
    operand = compile_tree(node.operand)

    def negative(output: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
        value = operand(output, state)
        if type(value) is int or type(value) is float:
            return -value
        raise Mismatch(f"{kind_of(value)} has no negative")

    return negative


def _boolean(node: ast.BoolOp) -> Evaluator:
    parts = [compile_condition(part) for part in node.values]
    stops_at = isinstance(node.op, ast.Or)

    def combine(output: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
        for part in parts:
            if truth(part(output, state)) is stops_at:
                return stops_at
        return not stops_at

    return combine


def _compare(node: ast.Compare) -> Evaluator:
    first = compile_tree(node.left)
    steps = []
    before = node.left
    for operator, operand in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot) and not (_is_singleton(operand) or _is_singleton(before)):
            raise _refused(operand, "`is` with something other than None, True or False")
        steps.append((_OPERATORS[type(operator)], compile_tree(operand)))
        before = operand
    if len(steps) == 1:
        holds, second = steps[0]
        return lambda output, state: holds(first(output, state), second(output, state))

    def chain(output: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
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
    ast.LtE: at_most,
    ast.Gt: lambda left, right: less(right, left),
    ast.GtE: lambda left, right: at_most(right, left),
    ast.In: lambda item, whole: contains(whole, item),
    ast.NotIn: lambda item, whole: not contains(whole, item),
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}

_COMPILERS: Final[Mapping[type[ast.expr], Callable[[Any], Evaluator]]] = {
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
    ast.Call: "a call",
    ast.BinOp: "arithmetic",
    ast.IfExp: "`if … else`",
    ast.Lambda: "lambda",
    ast.JoinedStr: "an f-string",
    ast.Dict: "a mapping literal",
    ast.Set: "a set literal",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.NamedExpr: "an assignment",
    ast.Starred: "a star",
}
