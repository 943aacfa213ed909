"""Read the fields of JSON objects by name and type, collecting every mistake instead of stopping at one.

It knows JSON and paths (`nodes[2].retry.max_attempts`), but no graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeVar

Word = TypeVar("Word", bound=str)

_ABSENT: Final = object()
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class Fields:
    """One object of a document. A field that is absent, or wrong and noted, gives its default.

    Every getter takes the field's name, then other spellings of it. Call `close` last: it notes the fields
    that no getter has read.
    """

    def __init__(self, value: Mapping[str, Any], where: str, problems: list[str]) -> None:
        self._value = value
        self._where = where
        self._problems = problems
        self._asked: dict[str, None] = {}

    def path(self, name: str) -> str:
        """The field's path in the document."""
        return f"{self._where}.{name}" if self._where else name

    def note(self, name: str, words: str) -> None:
        """Add a mistake in the field; without a name, in the whole object."""
        where = self.path(name) if name else self._where
        self._problems.append(f"{where}: {words}" if where else words)

    def has(self, *names: str) -> bool:
        """Whether the field is present under one of its names."""
        self._asked.update(dict.fromkeys(names))
        return any(name in self._value for name in names)

    def raw(self, *names: str) -> Any:
        """The field's unchecked value; None when it is absent."""
        _, value = self._take(names)
        return None if value is _ABSENT else value

    def text(self, *names: str, default: str | None = None) -> str:
        """A text; without a default it is required and not empty."""
        name, value = self._take(names)
        if value is _ABSENT:
            if default is None:
                self.note(name, "is missing")
            return default or ""
        if value == "" and default is None:
            self.note(name, "is empty")
        text: str = self._typed(name, value, "a text", default or "")
        return text

    def optional_text(self, *names: str) -> str | None:
        """A text, or None when null or absent."""
        name, value = self._take(names)
        return None if value is _ABSENT or value is None else self._typed(name, value, "a text", "")

    def choice(self, *names: str, options: tuple[Word, ...], default: Word) -> Word:
        """One of `options`."""
        name, value = self._take(names)
        if value is _ABSENT:
            return default
        for option in options:
            if option == value:
                return option
        given = f"{value!r}" if isinstance(value, str) else kind(value)
        self.note(name, f"expected {' or '.join(options)}, but {given} was given{closest(value, options)}")
        return default

    def flag(self, *names: str) -> bool:
        """True or false; false when absent."""
        name, value = self._take(names)
        return False if value is _ABSENT else self._typed(name, value, "true or false", default=False)

    def whole(self, *names: str, default: int) -> int:
        """A whole number."""
        name, value = self._take(names)
        return default if value is _ABSENT else self._typed(name, value, "a whole number", default)

    def number(self, *names: str, default: float) -> float:
        """A number."""
        name, value = self._take(names)
        return default if value is _ABSENT else self._number(name, value, default)

    def optional_number(self, *names: str, default: float | None) -> float | None:
        """A number, or None for null."""
        name, value = self._take(names)
        if value is None:
            return None
        return default if value is _ABSENT else self._number(name, value, 0.0)

    def texts(self, *names: str) -> tuple[str, ...]:
        """A list of texts; empty when absent."""
        return self.optional_texts(*names) or ()

    def optional_texts(self, *names: str) -> tuple[str, ...] | None:
        """A list of texts, or None when null or absent. Wrong items are left out."""
        name, value = self._take(names)
        if value is _ABSENT or value is None:
            return None
        items: tuple[Any, ...] = self._typed(name, value, "a list", ())
        texts = [self._typed(f"{name}[{at}]", item, "a text", None) for at, item in enumerate(items)]
        return tuple(text for text in texts if text is not None)

    def text_map(self, *names: str) -> Mapping[str, str]:
        """An object whose values are texts; empty when absent. Wrong values are left out."""
        name, value = self._take(names)
        if value is _ABSENT:
            return {}
        found: Mapping[str, Any] = self._typed(name, value, "an object", _EMPTY)
        texts = {
            self._clean(name, key): self._typed(f"{name}.{key}", item, "a text", None)
            for key, item in found.items()
        }
        return {key: text for key, text in texts.items() if text is not None}

    def names(self) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(self._value)

    def is_object(self, name: str) -> bool:
        """Whether the field has an object."""
        return isinstance(self._value.get(name), Mapping)

    def inner(self, *names: str) -> Fields | None:
        """An object; None when it is absent or null. Close it as well."""
        name, value = self._take(names)
        if value is _ABSENT or value is None:
            return None
        return Fields(self._typed(name, value, "an object", _EMPTY), self.path(name), self._problems)

    def parameters(self, name: str) -> Fields:
        """An object; an empty one when it is absent. Close it as well."""
        found = self.inner(name)
        return Fields(_EMPTY, self.path(name), self._problems) if found is None else found

    def inner_list(self, name: str) -> tuple[Fields, ...]:
        """A list of objects; empty when absent. Close each."""
        _, value = self._take((name,))
        items: tuple[Any, ...] = () if value is _ABSENT else self._typed(name, value, "a list", ())
        return tuple(
            Fields(
                self._typed(f"{name}[{at}]", item, "an object", _EMPTY),
                self.path(f"{name}[{at}]"),
                self._problems,
            )
            for at, item in enumerate(items)
        )

    def close(self) -> None:
        """Note every field that was not read, with the closest known name."""
        for name in self._value:
            if name not in self._asked:
                self.note(name, f"there is no such field{closest(name, self._asked)}")

    def _take(self, names: tuple[str, ...]) -> tuple[str, Any]:
        self._asked.update(dict.fromkeys(names))
        given = [name for name in names if name in self._value]
        if len(given) > 1:
            self.note(given[1], f"says the same as {given[0]}; give one of them")
        return (given[0], self._value[given[0]]) if given else (names[0], _ABSENT)

    def _number(self, name: str, value: Any, default: float) -> float:
        number: float = self._typed(name, value, "a number", default)
        try:
            return float(number)
        except OverflowError:
            self.note(name, "is too large for a number")
            return default

    def _typed(self, name: str, value: Any, expected: str, default: Any) -> Any:
        """`value` if it is of the `expected` kind; else the default, and a note."""
        given = kind(value)
        if given != expected and not (expected == "a number" and given == "a whole number"):
            self.note(name, f"expected {expected}, but {given} was given")
            return default
        return self._clean(name, value) if isinstance(value, str) else value

    def _clean(self, name: str, text: str) -> str:
        """`text`, with a note about a lone surrogate (half a character), which only JSON can hold."""
        if any("\ud800" <= character <= "\udfff" for character in text):
            self.note(name, "holds half of a character, which no text can")
        return text


def kind(value: Any) -> str:
    """The name of a frozen JSON value's type, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a text"
        case tuple():
            return "a list"
        case _:
            return "an object"


def closest(given: object, known: Iterable[str]) -> str:
    """`; did you mean …?` with the closest known name; empty when none is close."""
    near = get_close_matches(given, list(known), n=1) if isinstance(given, str) else []
    return f"; did you mean {near[0]}?" if near else ""
