"""Mutants of a module: the small faults that can be put into it, and which of them are picked.

Not here: running tests on them. A fault replaces one piece of the source, so that the rest stays as it was.
Left alone is what no test should notice: annotations, decorators, texts, `__all__`, and what only a type
checker reads.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_SUMS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_LISTS = {"__all__", "__slots__"}
_SHOWN = 90
"""Characters of a fault's `before` and `after` in a report."""
_SAYS_LITTLE = 20
"""A piece of fewer characters is shown with its whole line."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Conditional = ast.If | ast.IfExp | ast.While


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: `source[start:end]`, in bytes, is replaced by `text`."""

    line: int
    """Counted from 1."""
    scope: str
    """The dotted name of the class and function that it is in; empty at the top of the module."""
    before: str
    after: str
    """The piece as it was and as it is, or its line where the piece alone says little."""
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """The source with the fault in it."""
        raw = source.encode()
        return (raw[: self.start] + self.text.encode() + raw[self.end :]).decode()

    def __str__(self) -> str:
        same = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.before, self.after, strict=False))
        )
        cut = max(0, same - _SHOWN // 2) if len(self.before) > _SHOWN else 0
        return f"{_short(self.before, cut)} -> {_short(self.after, cut)}"


def mutants(source: str, left_alone: Collection[str] = ()) -> tuple[Mutant, ...]:
    """Every fault, in the order of the source. A statement that calls something with one of the names
    `left_alone` in its dotted path has none. Raises SyntaxError."""
    return picked(source, left_alone=left_alone)


def picked(
    source: str, count: int | None = None, seed: int = 1, left_alone: Collection[str] = ()
) -> tuple[Mutant, ...]:
    """`count` of the faults, or all, in the order of the source. Raises SyntaxError.

    Each is drawn by its own words and its function's name, not by its place. The same code gives the same
    ones; an edit elsewhere changes few of them, and a new name for the module none.
    """
    tree = ast.parse(source)
    finder = _Finder(source, frozenset(left_alone))
    finder.look(tree, ())
    seen: Counter[str] = Counter()
    lots: dict[str, Mutant] = {}
    for mutant in finder.found:
        words = f"{seed}\n{mutant.scope}\n{mutant.before}\n{mutant.after}"
        seen[words] += 1
        lots[hashlib.sha256(f"{words}\n{seen[words]}".encode()).hexdigest()] = mutant
    plain = ast.dump(tree)
    usable = (lots[lot] for lot in sorted(lots) if _differs(lots[lot], source, plain))
    return tuple(sorted(islice(usable, count), key=lambda mutant: (mutant.start, mutant.after)))


def _differs(mutant: Mutant, source: str, plain: str) -> bool:
    """Whether the fault leaves a program, and another one than `plain`, the dump of the source's tree."""
    try:
        return ast.dump(ast.parse(mutant.applied(source))) != plain
    except SyntaxError:
        return False


def _short(text: str, cut: int) -> str:
    """One piece as a report shows it, without its first `cut` characters."""
    shown = f"…{text[cut:]}" if cut else text
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"


class _Finder:
    """Visits a tree and collects faults."""

    def __init__(self, source: str, left_alone: frozenset[str]) -> None:
        self.found: list[Mutant] = []
        self._left_alone = left_alone
        self._source = source
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def look(self, node: ast.AST, scope: tuple[str, ...]) -> None:
        if _is_left_alone(node) or self._calls_what_is_left_alone(node):
            return
        for after in _faults(node):
            # An `if` is changed in its condition alone, and is shown by it.
            old = node.test if isinstance(node, _Conditional) else node
            if isinstance(old, ast.expr | ast.stmt):
                self._add(old, after, scope)
        if isinstance(node, _Function | ast.ClassDef):
            scope = (*scope, node.name)
        for child in _children(node):
            self.look(child, scope)

    def _add(self, old: ast.expr | ast.stmt, after: ast.AST, scope: tuple[str, ...]) -> None:
        text = ast.unparse(after)
        mutant = Mutant(
            line=old.lineno,
            scope=".".join(scope),
            before=" ".join(ast.unparse(old).split()),
            after=" ".join(text.split()),
            start=self._starts[old.lineno - 1] + old.col_offset,
            end=self._starts[(old.end_lineno or old.lineno) - 1] + (old.end_col_offset or 0),
            text=f"({text})" if isinstance(old, ast.expr) else text,
        )
        if len(mutant.before) < _SAYS_LITTLE and old.lineno == old.end_lineno:
            start, end = self._starts[old.lineno - 1], self._starts[old.lineno]
            line = self._source.encode()[start:end]
            head, tail = line[: mutant.start - start].decode(), line[mutant.end - start :].decode()
            mutant = replace(mutant, before=line.decode().strip(), after=f"{head}{text}{tail}".strip())
        self.found.append(mutant)

    def _calls_what_is_left_alone(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Expr):
            return False
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        function = call.func if isinstance(call, ast.Call) else None
        while isinstance(function, ast.Attribute):
            if function.attr in self._left_alone:
                return True
            function = function.value
        return isinstance(function, ast.Name) and function.id in self._left_alone


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What may hold faults below a node."""
    skipped = {
        "annotation",
        "returns",
        "decorator_list",
        "bases",
        "keywords" if isinstance(node, ast.ClassDef) else "",
    }
    if isinstance(node, ast.match_case):
        skipped.add("pattern")
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield item


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        # Before Python 3.12 what is inside an f-string has no place in the source.
        case ast.JoinedStr():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _LISTS
        # Both sides of a `zip` have one length unless there is a fault elsewhere.
        case ast.keyword(arg="strict"):
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
        case _:
            return False


def _faults(node: ast.AST) -> Iterator[ast.AST]:
    """What could be there instead; for a conditional, in the place of its condition."""
    yield from _other_statements(node) if isinstance(node, ast.stmt) else _other_expressions(node)


def _other_expressions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            yield from _other_comparisons(node)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.BoolOp(op=other, values=node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() if type(node.op) in _SUMS and not _joins_texts(node.left, node.right):
            yield ast.BinOp(left=node.left, op=_SUMS[type(node.op)](), right=node.right)
        case ast.Constant():
            yield from _other_constants(node)
        case ast.IfExp(test=test) if not _is_negated_anyway(test):
            yield ast.UnaryOp(op=ast.Not(), operand=test)
        case _:
            return


def _other_statements(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.AugAssign() if type(node.op) in _SUMS and not _joins_texts(node.value):
            yield ast.AugAssign(target=node.target, op=_SUMS[type(node.op)](), value=node.value)
        case ast.Return(value=ast.expr() as value) if not _is_empty(value):
            yield ast.Return(value=ast.Constant(value=None))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.If(test=test) | ast.While(test=test) if not _is_negated_anyway(test):
            yield ast.UnaryOp(op=ast.Not(), operand=test)
        case _:
            return


def _other_comparisons(node: ast.Compare) -> Iterator[ast.Compare]:
    for place, operation in enumerate(node.ops):
        for table in (_NEGATED, _BOUNDARY):
            if type(operation) in table:
                ops = [*node.ops]
                ops[place] = table[type(operation)]()
                yield ast.Compare(left=node.left, ops=ops, comparators=node.comparators)


def _other_constants(node: ast.Constant) -> Iterator[ast.Constant]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(value=not value)
    elif isinstance(value, int | float) and value in (0, 1):
        yield ast.Constant(value=type(value)(1 - value))


def _joins_texts(*sides: ast.expr) -> bool:
    """Whether it is a sum of texts or lists, which cannot be a difference."""
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _is_empty(value: ast.expr) -> bool:
    """Whether it is a constant that reads like None, or has its own fault that does."""
    return isinstance(value, ast.Constant) and (not value.value or value.value is True)


def _is_negated_anyway(test: ast.expr) -> bool:
    """Whether the condition's own fault is its negation, or nothing follows from it."""
    match test:
        case ast.Compare(ops=[_]) | ast.UnaryOp(op=ast.Not()) | ast.Constant():
            return True
        case _:
            return False
