"""Compute arithmetic expressions exactly and within bounds. The syntax tree is evaluated, no code is run."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from fractions import Fraction

from pipeline.tools.tool import ToolFailed

_LONGEST = 200
"""Characters of an expression, which limits its depth too."""
_MOST_BITS = 10_000
"""The most bits of an intermediate whole number: larger ones are useless and take too long."""
_DIGITS = 12
_MOST_PLACES = 1_000
"""The most places to round to: rounding computes a power of ten, which cannot be interrupted."""
_SPELLED = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})  # noqa: RUF001 - as people type

Number = Fraction | float

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda value, digits=0: _rounded(value, digits),
    "sqrt": math.sqrt,
}
_CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e}


def calculated(expression: str) -> str:
    """The value of an expression such as `2 * (3 + 4.5) ^ 2`, in digits. Allowed are + - * / // % ** ^,
    parentheses, abs, min, max, round, sqrt, pi, e. Raises ToolFailed for any other expression."""
    if len(expression) > _LONGEST:
        raise ToolFailed(f"the expression is longer than {_LONGEST} characters")
    text = expression.translate(_SPELLED).replace("^", "**").rstrip("= ").strip()
    try:
        return _written(_value(ast.parse(text, mode="eval").body))
    except ToolFailed:
        raise
    except ZeroDivisionError:
        raise ToolFailed("it divides by zero") from None
    except (OverflowError, ValueError, TypeError, ArithmeticError):
        raise ToolFailed("it cannot be worked out") from None
    except (SyntaxError, RecursionError, MemoryError):
        raise ToolFailed("it is no sum such as 2 * (3 + 4)") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=bool()):
            raise ToolFailed("it is no sum such as 2 * (3 + 4)")
        case ast.Constant(value=int() | float() as number):
            # Converted from its digits: 0.1 means exactly a tenth.
            return _bounded(Fraction(str(number)))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[name](*(_value(arg) for arg in args)))
        case _:
            raise ToolFailed("only numbers, + - * / // % ^, ( ), abs, min, max, round, sqrt, pi and e")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, float) or isinstance(exponent, float) or exponent.denominator != 1:
        powered = float(base) ** float(exponent)
        if isinstance(powered, complex):
            raise ToolFailed("it has no real value")
        return _bounded(powered)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent.numerator) > _MOST_BITS:
        raise ToolFailed("the number would be too large")
    return base**exponent.numerator


def _rounded(value: Number, places: Number) -> Number:
    if not -_MOST_PLACES <= places <= _MOST_PLACES:
        raise ToolFailed(f"numbers are rounded to at most {_MOST_PLACES} places")
    return Fraction(round(Fraction(value), int(places)))


def _bounded(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ToolFailed("the number would be too large")
    elif max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise ToolFailed("the number would be too large")
    return value


def _written(value: Number) -> str:
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.{_DIGITS}g}"
