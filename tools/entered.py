"""Which functions of the product are entered while something happens: a profiler that counts, without times.

What the test suite or a tool calls is left out: a fake platform uses the product's clock too. Left out as
well are bodies of modules and classes, comprehensions and generator expressions (newer Pythons give some of
them no frame), and what the standard library generates, such as a dataclass's `__init__`.
"""

from __future__ import annotations

import dis
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[1]
_OUTSIDE = frozenset(("bench", "tests", "tools"))
_EXPRESSIONS = frozenset(("<dictcomp>", "<genexpr>", "<listcomp>", "<setcomp>"))
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LOOP = str(Path("asyncio", "events.py"))
"""Its frames are where a task or a callback begins."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of ours: `module` in dots, `line` where it is defined, `name` with its class."""

    module: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function was entered."""

    thread: str
    stack: tuple[Function, ...]
    """It, and those of the same task that wait for it, the innermost first."""
    given: tuple[str, ...]
    """The types of its arguments, where its name is one of the profiler's `look_at`."""
    is_coroutine: bool

    @property
    def function(self) -> Function:
        """What was entered."""
        return self.stack[0]


@dataclass(slots=True)
class Trace:
    """What was entered between two moments, oldest first."""

    calls: list[Call] = field(default_factory=list)
    resumptions: int = 0
    """How often a coroutine or a generator continued; these are not among `calls`."""

    @property
    def functions(self) -> set[Function]:
        """Each once."""
        return {call.function for call in self.calls}

    def by_module(self) -> Counter[str]:
        """How many calls each module has."""
        return Counter(call.function.module for call in self.calls)

    def stack_between(self, outer: tuple[str, str], inner: tuple[str, str]) -> tuple[Function, ...]:
        """From `outer` to the first call of `inner`, each a module and a name, the outermost first.

        Raises LookupError when `inner` was not called, or not by way of `outer` in the same task.
        """
        stack = next((call.stack for call in self.calls if _id(call.function) == inner), None)
        if stack is None:
            raise LookupError(f"{' '.join(inner)} was not called")
        ids = [_id(function) for function in stack]
        if outer not in ids:
            raise LookupError(f"{' '.join(inner)} was called, but not below {' '.join(outer)} in one task")
        return tuple(reversed(stack[: ids.index(outer) + 1]))

    def deepest(self, names: Collection[str], *, given: str) -> tuple[Function, ...]:
        """The functions called one of `names` that wait for one another when one of them is given an argument
        of the type `given`, the outermost first; of several such chains the longest."""
        chains = (
            [one for one in call.stack if _bare(one) in names] for call in self.calls if given in call.given
        )
        return tuple(reversed(max(chains, key=len, default=[])))

    def calls_into(self, package: str) -> int:
        """Calls of functions in `package` by functions outside of it."""
        return sum(_enters(call, package) for call in self.calls)


class Profiler:
    """Watches the thread that calls `install`, and those that are started after it."""

    def __init__(self, packages: Collection[str], *, look_at: Collection[str] = ()) -> None:
        self._packages = frozenset(packages)
        self._look_at = frozenset(look_at)
        self._trace: Trace | None = None
        self._modules: dict[str, str] = {}
        self._first: dict[CodeType, int] = {}

    def install(self) -> None:
        """Begin to watch."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def remove(self) -> None:
        """Threads that are watched already record nothing any more."""
        threading.setprofile(None)
        sys.setprofile(None)
        self._trace = None

    def record(self) -> Trace:
        """Record from now on, into a new trace."""
        self._trace = Trace()
        return self._trace

    def stop(self) -> None:
        """Record nothing more."""
        self._trace = None

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        trace = self._trace
        if trace is None or event != "call" or self._function(frame.f_code) is None:
            return
        stack = self._stack(frame)
        if not stack:
            return
        code = frame.f_code
        if code.co_flags & _RESUMABLE and frame.f_lasti > self._first_resume(code):
            trace.resumptions += 1
            return
        names = code.co_varnames[: code.co_argcount] if code.co_name in self._look_at else ()
        trace.calls.append(
            Call(
                thread=threading.current_thread().name,
                stack=stack,
                given=tuple(type(frame.f_locals[name]).__name__ for name in names),
                is_coroutine=bool(code.co_flags & inspect.CO_COROUTINE),
            )
        )

    def _stack(self, frame: FrameType | None) -> tuple[Function, ...]:
        """The functions of ours that wait for the frame's; none below one of the tests or of a tool."""
        found: list[Function] = []
        while frame is not None and not frame.f_code.co_filename.endswith(_LOOP):
            if self._module(frame.f_code.co_filename).partition(".")[0] in _OUTSIDE:
                return ()
            function = self._function(frame.f_code)
            if function is not None:
                found.append(function)
            frame = frame.f_back
        return tuple(found)

    def _function(self, code: CodeType) -> Function | None:
        """Which function the code is; None for others' code, and for what is no function."""
        module = self._module(code.co_filename)
        if module.partition(".")[0] not in self._packages:
            return None
        if code.co_name in _EXPRESSIONS or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        return Function(module, code.co_firstlineno, code.co_qualname)

    def _module(self, filename: str) -> str:
        """The file's name as a module of the project; empty for a file from elsewhere."""
        if filename not in self._modules:
            path = Path(filename).with_suffix("")
            parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else ()
            self._modules[filename] = ".".join(parts).removesuffix(".__init__")
        return self._modules[filename]

    def _first_resume(self, code: CodeType) -> int:
        """Where a coroutine or generator begins; it continues behind that."""
        if code not in self._first:
            self._first[code] = next(
                one.offset for one in dis.get_instructions(code) if one.opname == "RESUME" and one.arg == 0
            )
        return self._first[code]


def lines(trace: Trace) -> Iterator[str]:
    """The calls in order, one in a line; those in threads say in which."""
    for call in trace.calls:
        beside = "" if call.thread == threading.main_thread().name else f" [{call.thread}]"
        yield f"{call.function}{beside}"


def _id(function: Function) -> tuple[str, str]:
    return function.module, function.name


def _bare(function: Function) -> str:
    return function.name.rpartition(".")[2]


def _enters(call: Call, package: str) -> bool:
    inside = [one.module == package or one.module.startswith(f"{package}.") for one in call.stack]
    # A task's own first function has no caller; a callback or a thread's loop is no call.
    return inside[0] and not any(inside[1:]) and (len(inside) > 1 or call.is_coroutine)
