"""The safe expression language of conditional edges, row by row."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_NODES,
    Expression,
    expression_problem,
)
from pipeline.graph.definition.frozen_json import freeze
from tests.support.tables import each

OUTPUT = freeze(
    {
        "confidence": 0.9,
        "category": "billing",
        "items": [1, 2, [3, "x"]],
        "user": {"name": "Ada", "tags": ["a", "b"]},
        "shared": "from the output",
        "empty": [],
        "nothing": None,
    }
)
STATE = freeze({"shared": "from the state", "turns": 3, "done": False, "matrix": [[1, 2], [3]]})

TRUE = {
    "a comparison with a key of the output": "confidence >= 0.8",
    "membership in a list": "category in ['billing', 'technical']",
    "membership in a tuple": "category in ('billing',)",
    "absence from a list": "category not in ['sales']",
    "membership in a text": "'bill' in category",
    "membership in a list of the state": "2 in items",
    "membership of a list in a list": "[3, 'x'] in items",
    "a key in a mapping": "'name' in user",
    "a number is no key of a mapping": "1 not in user",
    "negation": "not done",
    "negation of an empty list": "not empty",
    "a chain": "1 < 2 < 3",
    "a chain of different comparisons": "1 < turns <= 3 != 4",
    "a subscript by string": "output['confidence'] > .5",
    "a dotted read of a key": "output.confidence > .5",
    "nested dotted reads": "output.user.name == 'Ada'",
    "a mix of reads": "user['tags'][-1] == 'b' and output.user.tags[0] == 'a'",
    "an index": "items[0] == 1",
    "an index from the end": "items[-1][1] == 'x'",
    "an index of a text": "category[0] == 'b'",
    "result names the output too": "result.confidence == output['confidence']",
    "state and memory name the state": "state.turns == 3 and memory['turns'] == 3",
    "the state is read by bare names": "turns == 3",
    "the output shadows the state": "shared == 'from the output'",
    "the shadowed key stays readable": "state.shared == 'from the state'",
    "the whole state as a value": "'turns' in state and 'turns' not in output",
    "or": "done or turns",
    "or gives a truth value, not an operand": "(0 or 'z') == true",
    "and gives a truth value, not an operand": "(True and 5) == True",
    "and binds tighter than or": "true or false and false",
    "equality across kinds of numbers": "1 == 1.0",
    "inequality of different kinds": "'1' != 1",
    "None": "nothing is None and None is nothing",
    "is not None": "turns is not None",
    "lower-case literals": "true and not false and null is None",
    "is False": "done is False and done is false",
    "zero is not False": "not (0 is False)",
    "a negative number": "-1 < turns and turns > -2.5",
    "the negative of a value": "-turns == -3",
    "a list literal equals a stored list": "items == [1, 2, [3, 'x']]",
    "a tuple literal equals a stored list": "items == (1, 2, (3, 'x'))",
    "a list literal with values": "[turns, category] == [3, 'billing']",
    "lists of different length differ": "items != [1, 2]",
    "mappings compare by content": "user == output.user and output != state",
    "lists have an order": "[1, 2] < [1, 3] and [1] < [1, 0] and matrix >= [[1, 2]]",
    "texts have an order": "'a' < 'b' <= 'b'",
    "a literal alone": "'text'",
    "short circuit of or skips a missing name": "turns == 3 or missing == 1",
    "short circuit skips a mismatch": "turns == 3 or 'a' < 1",
    "strings may hold brackets and quotes": "'((((((((((((((((((((((((((((((' != \"it's\"",
    "letters beyond ASCII": "'é' != 'e'",
    "surrounding blanks": "  turns == 3\t",
}

FALSE = {
    "a comparison that does not hold": "confidence < 0.8",
    "a chain that breaks": "1 < 2 > 3",
    "a chain stops before a missing name": "3 < 2 < missing",
    "a missing name": "missing == 1",
    "a missing name is not even None": "missing is None",
    "negation does not turn a missing name true": "not missing",
    "a missing name before or": "missing == 1 or turns == 3",
    "a missing name in a list": "turns in [missing, 3]",
    "a missing key by subscript": "output['missing'] == 1",
    "a missing key by dot": "output.missing != 1",
    "a method's name is only a key": "output.get",
    "a missing index": "items[7] == 1",
    "a missing index from the end": "items[-8] != 1",
    "an index into a mapping": "user[0] == 1",
    "output is not searched for keys of the state": "output.turns == 3",
    "short circuit of and": "nothing is not None and nothing > 3",
    "a mapping equals no list": "user == ['name', 'tags']",
    "an empty list": "empty",
    "None alone": "nothing",
}

MISMATCH = {
    "text and a number": ("'a' < 1", "text and a number have no order"),
    "None and a number": ("nothing > 3", "a number and nothing have no order"),
    "mappings have no order": ("user < user", "a mapping and a mapping have no order"),
    "lists whose items have no order": ("items < [1, 'x']", "a number and text have no order"),
    "negation does not turn a mismatch true": ("not ('a' < 1)", "no order"),
    "a mismatch before or": ("'a' < 1 or turns == 3", "no order"),
    "in a number": ("1 in turns", "a number cannot be in a number"),
    "a number in a text": ("1 in category", "a number cannot be in text"),
    "a subscript of a number": ("turns[0] == 1", "a number has no 0"),
    "a dotted read of a text": ("category.upper", "text has no 'upper'"),
    "a dotted read of nothing": ("nothing.name == 1", "nothing has no 'name'"),
    "a key of a list": ("items['a'] == 1", "a list has no 'a'"),
    "the negative of a text": ("-category == 1", "text has no negative"),
    "the negative of a truth value": ("-done == 0", "a truth value has no negative"),
}

REFUSED = {
    "nothing": ("", "empty"),
    "blanks": (" \t", "empty"),
    "a call": ("len(items) > 1", "a call"),
    "a method": ("category.upper() == 'A'", "a call"),
    "get": ("output.get('k', 0) > 1", "a call"),
    "a power": ("2 ** 10 > 1", "arithmetic"),
    "a tower of powers": ("9**9**9", "arithmetic"),
    "repetition": ("'a' * 10 == 'a'", "arithmetic"),
    "addition": ("turns + 1 == 4", "arithmetic"),
    "a shift": ("1 << 100 > 1", "arithmetic"),
    "bitwise not": ("~turns == 1", "arithmetic"),
    "unary plus": ("+turns == 3", "arithmetic"),
    "a minus before a text": ("-'a' == 1", "minus"),
    "a minus before a truth value": ("-True == -1", "minus"),
    "a ternary": ("1 if done else 2", "`if … else`"),
    "a mapping literal": ("user == {'name': 1}", "a mapping literal"),
    "a set literal": ("turns in {1, 3}", "a set literal"),
    "a list comprehension": ("[i for i in items]", "a comprehension"),
    "a generator": ("(i for i in items)", "a comprehension"),
    "a set comprehension": ("{i for i in items}", "a comprehension"),
    "a mapping comprehension": ("{i: i for i in items}", "a comprehension"),
    "lambda": ("lambda: 1", "lambda"),
    "an f-string": ("f'{turns}' == '3'", "an f-string"),
    "a slice": ("items[0:1] == [1]", "a subscript"),
    "a computed subscript": ("items[turns] == 1", "a subscript"),
    "a truth value as subscript": ("items[True] == 2", "a subscript"),
    "a fraction as subscript": ("items[1.5] == 2", "a subscript"),
    "a minus before a string subscript": ("user[-'name'] == 2", "a subscript"),
    "two subscripts at once": ("items[0, 1] == 2", "a subscript"),
    "an assignment expression": ("(x := 3) == 3", "an assignment"),
    "a star": ("[*items] == 1", "a star"),
    "await": ("await items", "Await"),
    "yield": ("(yield)", "Yield"),
    "a dunder attribute": ("output.__class__", "__class__"),
    "a dunder name": ("__import__ == 1", "__import__"),
    "a dunder in letters that look like it": ("output.__cl\uff41ss__", "__class__"),
    "an underscore": ("_private == 1", "_private"),
    "a dot behind a text": ("'a'.b == 1", "a dot"),
    "a dot behind a list": ("[1].b == 1", "a dot"),
    "bytes": ("b'a' == 1", "the bytes literal"),
    "a complex number": ("3j == 1", "the complex literal"),
    "an ellipsis": ("... == 1", "the ellipsis literal"),
    "a whole number without bounds": ("1" * 400 + " == 1", "64 bits"),
    "an infinite number": ("1e999 > 1", "not finite"),
    "is between values": ("turns is done", "`is`"),
    "is with a number": ("turns is 3", "`is`"),
    "a statement": ("turns = 3", "invalid syntax"),
    "two expressions": ("turns; done", "invalid syntax"),
    "an import": ("import os", "invalid syntax"),
    "two lines": ("turns ==\n3", "one line"),
    "a null byte": ("turns\0", "one line"),
    "half a surrogate": ("turns == '\ud800'", "cannot be read"),
    "an unknown escape": ("turns == '\\d'", "invalid escape"),
    "triple quotes": ("turns == '''a'''", "triple quotes"),
    "an open bracket": ("(turns == 3", "never closed"),
}


@each("text", TRUE.values())
def test_true(text: str) -> None:
    assert Expression.parse(text).evaluate(OUTPUT, STATE) == (True, "")


@each("text", FALSE.values())
def test_false_without_a_problem(text: str) -> None:
    assert Expression.parse(text).evaluate(OUTPUT, STATE) == (False, "")


@each("text, words", MISMATCH.values())
def test_a_mismatch_is_false_with_a_problem(text: str, words: str) -> None:
    holds, problem = Expression.parse(text).evaluate(OUTPUT, STATE)
    assert holds is False
    assert words in problem


@each("text, words", REFUSED.values())
def test_refused_when_it_is_parsed(text: str, words: str) -> None:
    with pytest.raises(GraphError) as caught:
        Expression.parse(text)
    assert words in str(caught.value)
    assert expression_problem(text) == str(caught.value)
    assert Expression.parse_or_none(text) is None


def test_a_fine_expression_has_no_problem_and_keeps_its_text() -> None:
    assert expression_problem("turns > 1") == ""
    assert Expression.parse("turns > 1").text == "turns > 1"
    assert Expression.parse("turns > 1") == Expression.parse("turns > 1") != Expression.parse("turns > 2")


def test_a_refusal_quotes_the_expression_and_says_where() -> None:
    words = "the expression \"turns == 'é' and len(x)\" is refused: a call is not allowed (character 18)"
    assert expression_problem("  turns == 'é' and len(x)") == words


def test_a_long_expression_is_quoted_in_part() -> None:
    assert len(expression_problem("x" * (MAX_LENGTH + 1))) < 200


def test_the_length_is_bounded() -> None:
    assert expression_problem("turns == '" + "x" * (MAX_LENGTH - 11) + "'") == ""
    assert f"and {MAX_LENGTH} are allowed" in expression_problem("turns == '" + "x" * (MAX_LENGTH - 10) + "'")


def test_the_number_of_parts_is_bounded() -> None:
    fits = ",".join("1" * (MAX_NODES - 3))
    assert expression_problem(f"1 in [{fits}]") == ""
    assert f"more than {MAX_NODES} parts" in expression_problem(f"1 in [{fits},1]")


def test_the_depth_is_bounded() -> None:
    assert expression_problem("not " * (MAX_DEPTH - 1) + "x") == ""
    assert f"deeper than {MAX_DEPTH}" in expression_problem("not " * MAX_DEPTH + "x")
    assert expression_problem("(" * MAX_DEPTH + "x" + ")" * MAX_DEPTH) == ""
    for opening, closing in ("()", "[]", "{}"):
        nested = opening * (MAX_DEPTH + 1) + closing * (MAX_DEPTH + 1)
        assert "brackets nest deeper" in expression_problem(nested)


def test_values_that_nest_too_deep_are_not_compared() -> None:
    left: Any = ()
    right: Any = ()
    for _ in range(5_000):
        left, right = (left,), (right,)
    holds, problem = Expression.parse("a == b").evaluate({"a": left, "b": right}, {})
    assert holds is False
    assert "deep" in problem
    holds, problem = Expression.parse("a < b").evaluate({"a": left, "b": right}, {})
    assert holds is False
    assert "deep" in problem


def test_the_roots_may_be_mappings_of_any_kind() -> None:
    class Keys(dict[str, Any]):
        """Not a plain dict."""

    expression = Expression.parse("output.a == 1 and state.b == 2 and a < b and 'a' in output")
    assert expression.evaluate(Keys(a=1), MappingProxyType(Keys(b=2))) == (True, "")


def test_plain_lists_and_dicts_count_like_their_frozen_forms() -> None:
    output = {"items": [1, {"a": [2]}]}
    assert Expression.parse("items == other and items[1].a == [2]").evaluate(
        output, {"other": freeze(output["items"])}
    ) == (True, "")
