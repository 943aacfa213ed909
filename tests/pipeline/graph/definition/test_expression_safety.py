"""No expression escapes, hangs, raises or grows; and a second evaluator agrees on random ones."""

from __future__ import annotations

import ast
import operator
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.graph.definition.expressions import Expression, expression_problem
from pipeline.graph.definition.frozen_json import freeze
from tests.support.examples import examples
from tests.support.tables import each


class Canary:
    """A foreign object in the state: any look at it is an escape."""

    touched: list[str] = []  # noqa: RUF012 - shared on purpose; an instance attribute would be guarded too

    def _explode(self, *_arguments: object) -> NoReturn:
        Canary.touched.append("touched")
        raise AssertionError("an expression touched a foreign object")

    __getattribute__ = __setattr__ = __delattr__ = _explode
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _explode
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __call__ = _explode
    __hash__ = __repr__ = __str__ = __neg__ = __index__ = __int__ = __float__ = _explode
    __instancecheck__ = __format__ = __add__ = __radd__ = __reversed__ = __length_hint__ = _explode


CANARIES: Mapping[str, Any] = {
    "a": Canary(),
    "b": (Canary(), 1),
    "c": {"k": Canary(), "n": 1},
    "items": [Canary(), "x"],
    "n": 3,
    "s": "text",
}
PLAIN = freeze({"a": 1, "b": [1, "x", None], "c": {"k": {"n": 2}}, "items": [], "n": -1.5, "s": "xyz"})

_names = st.sampled_from(["a", "b", "c", "n", "s", "items", "output", "result", "state", "memory", "missing"])
_FRAGMENTS = r"""
a b c n s items output state missing True None true null 0 1 -1 2.5 'x' 'k' "" ( ) [ ] { } , : .
== != < <= > >= in not is and or if else for lambda := * ** + - ~ @ | .k .__class__ ['k'] [0] [-1] [0:1]
() (a) __import__ __class__ f'{a}' b'' ... await yield \ # '''
"""
_fragments = st.sampled_from([*_FRAGMENTS.split(), "\n", "\0"])


@examples(200)
@given(text=st.lists(_fragments, max_size=30).map(" ".join) | st.lists(_fragments, max_size=30).map("".join))
@example(text="a == a.__class__")
@example(text="b == [a, 1]")
@example(text="c == c and b == b and items == items")
@example(text="c == state and output == state")
@example(text="a in items and items < items and a in b")
@example(text="a in c")
@example(text="-a < 1 or not a")
@example(text="a[0] == 1 or a.k == 1")
def test_text_made_of_the_language_touches_no_foreign_object(text: str) -> None:
    Canary.touched.clear()
    _evaluate_safely(text)
    assert not Canary.touched


@given(text=st.text(max_size=600))
@example(text="\ud800")
@example(text="\0")
def test_random_text_is_refused_or_gives_a_truth_value(text: str) -> None:
    _evaluate_safely(text)


def _evaluate_safely(text: str) -> None:
    expression = Expression.parse_or_none(text)
    if expression is None:
        assert expression_problem(text)
        return
    for output, state in ((CANARIES, CANARIES), (PLAIN, PLAIN), ({}, CANARIES), ({}, {})):
        holds, problem = expression.evaluate(output, state)
        assert type(holds) is bool
        assert type(problem) is str
        assert not (holds and problem)


ADVERSARIAL = {
    "open parentheses": "(" * 500,
    "open lists": "[" * 500,
    "open mappings": "{" * 500,
    "mappings in mappings": "{1:" * 160,
    "brackets behind a string that ends elsewhere": "'''x'y''' " + "(" * 480,
    "brackets in a raw string": "r'\\' " + "(" * 490,
    "closed parentheses": "(" * 249 + "1" + ")" * 249,
    "negations": "not " * 124 + "x",
    "minus signs": "-" * 499 + "1",
    "inversions": "~" * 499 + "1",
    "lambdas": "lambda:" * 71 + "1",
    "ternaries": "1 if 1 else " * 41 + "1",
    "calls": "f" + "()" * 249,
    "nested calls": "f(" * 166 + ")" * 166,
    "dots": "a" + ".a" * 249,
    "subscripts": "a" + "[0]" * 166,
    "a chain": "a" + "<a" * 249,
    "ors": "a" + " or a" * 99,
    "powers": "9" + "**9" * 166,
    "a long number": "9" * 500,
    "a long number in base 16": "0x" + "f" * 498,
    "a large exponent": "1e" + "9" * 490,
    "f-strings": "f'{" * 160,
    "a very long text": "a" * 10_000_000,
    "many commas": "," * 500,
    "many strings": "'a'" * 166,
    "a string of null characters": "'" + "\\0" * 249 + "'",
}


@each("text", ADVERSARIAL.values())
def test_parsing_is_bounded_in_time_and_memory(text: str) -> None:
    started = time.process_time()
    Expression.parse_or_none(text)
    assert time.process_time() - started < 5  # an explosion, not a slow machine
    tracemalloc.start()
    try:
        Expression.parse_or_none(text)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@cache
def large() -> Mapping[str, Any]:
    """A state that is large in every way."""
    return {
        "huge": "x" * 5_000_000,
        # A copy of either is larger than what an evaluation may take.
        "long": tuple(range(100_000)),
        "also_long": list(range(100_000)),
        "mapping": {str(key): key for key in range(100_000)},
        "digits": 10**100_000,
    }


@each(
    "text",
    [
        "'y' in huge",
        "huge in huge and huge == huge and huge <= huge",
        "-1 in long or -1 in also_long",
        "long == also_long and long <= also_long",
        "mapping == mapping and 'x' not in mapping",
        "[huge, huge, [huge, huge, [huge, huge]]] == [huge, huge, [huge, huge, [huge, huge]]]",
        "-digits < digits and digits > 1.5",
        "huge < 1 or long",
        "huge.x == 1",
    ],
)
def test_evaluation_over_large_values_is_bounded_in_time_and_memory(text: str) -> None:
    expression = Expression.parse(text)
    values = large()
    started = time.process_time()
    expression.evaluate(values, {})
    assert time.process_time() - started < 10  # an explosion, not a slow machine
    tracemalloc.start()
    try:
        _, problem = expression.evaluate(values, {})
        assert tracemalloc.get_traced_memory()[1] < 500_000
        assert len(problem) < 200
    finally:
        tracemalloc.stop()


# A second evaluator: Python's own meaning of the same tree, with the language's rules added at the leaves.


class _Missing(Exception):
    pass


def _reference(node: ast.AST, output: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The value over plain dicts and lists; raises _Missing, and TypeError for a mismatch."""

    def value_of(part: ast.AST) -> Any:
        return _reference(part, output, state)

    match node:
        case ast.Name(id=name):
            roots = {"output": output, "result": output, "state": state, "memory": state}
            for place in ({"true": True, "false": False, "null": None}, roots, output, state):
                if name in place:
                    return place[name]
            raise _Missing
        case ast.Attribute(value=base, attr=key):
            return _read(value_of(base), key)
        case ast.Subscript(value=base, slice=index):
            return _read(value_of(base), ast.literal_eval(index))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(value_of(operand))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _chain(value_of(left), zip(ops, map(value_of, comparators), strict=True))
        case _:
            return _simple(node, value_of)


def _simple(node: ast.AST, value_of: Callable[[ast.AST], Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [value_of(element) for element in elements]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not value_of(operand)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(map(value_of, values))
        case ast.BoolOp(values=values):
            return any(map(value_of, values))
    raise AssertionError(ast.dump(node))


def _negative(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError
    return -value


def _chain(left: Any, steps: Iterable[tuple[ast.cmpop, Any]]) -> bool:
    for op, right in steps:
        if not _holds(op, left, right):
            return False
        left = right
    return True


def _read(base: Any, key: str | int) -> Any:
    if isinstance(base, dict):
        if key not in base:
            raise _Missing
        return base[key]
    try:
        return base[key]
    except IndexError:
        raise _Missing from None


def _holds(op: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(op, ast.In | ast.NotIn):
        found = isinstance(left, str) and left in right if isinstance(right, dict) else left in right
        return found is isinstance(op, ast.In)
    if isinstance(op, ast.Is | ast.IsNot):
        return (left is right) is isinstance(op, ast.Is)
    functions = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
    }
    return bool(functions[type(op)](left, right))


_literals = st.sampled_from(
    ["0", "1", "2.5", "-1", "'x'", "''", "'xyz'", "True", "false", "None", "null", "[]"]
)
_reads = st.builds(
    str.__add__,
    _names,
    st.sampled_from(["", "", ".k", "['k']", "[0]", "[-1]", ".a", ".k.n", "['c'].k", "[7]", ".missing"]),
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    comparison = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, comparison, inner),
        st.builds("({} {} {} {} {})".format, inner, comparison, inner, comparison, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("({} is {})".format, inner, st.sampled_from(["None", "not None", "True", "not false"])),
        st.builds("(not {})".format, inner),
        st.builds("(-{})".format, _reads),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({},)".format, inner),
    )


_expressions = st.recursive(_literals | _reads, _larger, max_leaves=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "xyz", 2.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("akn"), inner, max_size=2),
    max_leaves=5,
)
_states = st.dictionaries(st.sampled_from(["a", "b", "c", "n", "s", "items"]), _values, max_size=5)


@examples(200)
@given(text=_expressions, output=_states, state=_states)
def test_a_second_evaluator_agrees(text: str, output: dict[str, Any], state: dict[str, Any]) -> None:
    expression = Expression.parse_or_none(text)
    if expression is None:
        assert "is refused" in expression_problem(text)
        return
    try:
        expected = (bool(_reference(ast.parse(text, mode="eval").body, output, state)), False)
    except _Missing:
        expected = (False, False)
    except TypeError:
        expected = (False, True)
    for given_output, given_state in ((output, state), (freeze(output), freeze(state))):
        holds, problem = expression.evaluate(given_output, given_state)
        assert (holds, bool(problem)) == expected, problem


@pytest.mark.parametrize(
    "text", ["x,", "x > 1, y", "[]", "[x]", "(x, y)", "not [x]", "x or [y]", "x and (y,)"]
)
def test_a_list_is_no_condition(text: str) -> None:
    assert "a list as a condition" in expression_problem(text)


@pytest.mark.parametrize("text", ["x in [1, 2]", "x == (1, 2)", "[x, y] == [1, 2]", "not (x in (1, 2))"])
def test_a_list_may_be_compared(text: str) -> None:
    assert expression_problem(text) == ""


@pytest.mark.parametrize("text", ["a == b", "a != b", "a <= b", "a in [b]"])
def test_values_that_share_their_parts_are_compared_part_by_part_once(text: str) -> None:
    a: Any = [1]
    b: Any = [1]
    for _ in range(50):
        a, b = [a, a], [b, b]
    # Without it, this takes two to the power of fifty steps.
    assert Expression.parse(text).evaluate({"a": a, "b": b}, {}) == (text != "a != b", "")
