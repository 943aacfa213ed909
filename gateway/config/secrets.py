"""Secrets by reference: the settings hold `env:NAME` or `file:PATH`, never the value.

A reference is read again at each `resolve()`, so a rotated file takes effect without a restart.
Not here: removing secrets from texts (the redactor does that with `Secrets.known_values`).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gateway.config.environment import environment
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

MAX_SECRET_BYTES = 64 * 1024
REFERENCE_FIX = 'write "env:NAME" or "file:PATH" and keep the secret itself out of the configuration'

_NO_REFERENCE = "is not a reference to a secret"
_SCHEMES = ("env", "file")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORBIDDEN_MODE = stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


class SecretUnavailable(ConfigurationError):
    """A referenced secret cannot be used now; the text names the reference, never the value."""

    def __init__(self, reference: str, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{reference}: {what}; {fix}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretContext:
    """The context for reading a reference: the folder of the configuration file and the environment."""

    folder: Path = field(default_factory=Path)
    environ: Mapping[str, str] = field(default_factory=environment, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """A reference to a secret. Its `str`, `repr` and dump never show the value."""

    scheme: Literal["env", "file"]
    target: str
    """The variable's name, or the path, relative to `context.folder`."""
    context: SecretContext = field(default_factory=SecretContext, repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, context: SecretContext | None = None) -> SecretRef:
        """Parse `env:NAME` or `file:PATH`. Raises ValueError, without repeating `text`, for anything else."""
        scheme, _, target = text.partition(":")
        if scheme not in _SCHEMES or not target:
            raise ValueError(_NO_REFERENCE)
        if scheme == "env" and _VARIABLE.fullmatch(target) is None:
            raise ValueError("does not name an environment variable after env:")
        if scheme == "file" and (target.startswith("~") or not target.isprintable()):
            raise ValueError("does not name a plain path after file:")
        return cls(
            scheme=cast("Literal['env', 'file']", scheme), target=target, context=context or SecretContext()
        )

    @property
    def path(self) -> Path:
        """The path of a `file:` reference."""
        return self.context.folder / self.target

    def resolve(self) -> str:
        """The secret's current value. Reads a small file; raises SecretUnavailable."""
        value = self._read_variable() if self.scheme == "env" else self._read_file()
        value = value.rstrip("\r\n")
        if not value.strip():
            raise self._unavailable(f"{self._subject()} is empty", "put the secret there")
        if not value.isprintable():
            raise self._unavailable(
                f"{self._subject()} holds a line break or a control character", "store the secret as one line"
            )
        return value

    def __str__(self) -> str:
        return f"{self.scheme}:{self.target}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def _validate(cls, value: Any, info: ValidationInfo) -> SecretRef:
        if isinstance(value, SecretRef):
            return value
        refusal = _NO_REFERENCE
        if isinstance(value, str):
            try:
                return cls.parse(value, info.context)
            except ValueError as error:
                refusal = str(error)
        raise PydanticCustomError("refused", "{what}", {"what": refusal, "fix": REFERENCE_FIX})

    def _subject(self) -> str:
        return f"the environment variable {self.target}" if self.scheme == "env" else f"the file {self.path}"

    def _unavailable(self, what: str, fix: str) -> SecretUnavailable:
        return SecretUnavailable(str(self), what, fix)

    def _read_variable(self) -> str:
        try:
            return self.context.environ[self.target]
        except KeyError:
            raise self._unavailable(f"{self._subject()} is not set", "set it to the secret") from None

    def _read_file(self) -> str:
        try:
            return self._read_checked().decode("utf-8")
        except UnicodeDecodeError:
            # Raised outside the handler, so that the new error's context does not contain the bytes.
            pass
        except OSError as error:
            reason = error.strerror or "cannot be read"
            raise self._unavailable(
                f"{self._subject()} cannot be read ({reason})", "create it readable for this user, mode 600"
            ) from None
        raise self._unavailable(
            f"{self._subject()} is not UTF-8 text", "store the secret as one line of text"
        )

    def _read_checked(self) -> bytes:
        # O_NONBLOCK: opening a FIFO without a writer would wait for ever.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._unavailable(f"{self._subject()} is not a regular file", "name a file")
            if status.st_mode & _FORBIDDEN_MODE:
                mode = f"{stat.S_IMODE(status.st_mode):o}"
                raise self._unavailable(
                    f"{self._subject()} can be read by everyone or written by others (mode {mode})",
                    f"run: chmod 600 {self.path}",
                )
            content = file.read(MAX_SECRET_BYTES + 1)
        if len(content) > MAX_SECRET_BYTES:
            raise self._unavailable(f"{self._subject()} is larger than 64 KiB", "name the file of the secret")
        return content


class Secrets:
    """The values that must not appear in texts. Keeps earlier values, since logs outlive a rotation."""

    def __init__(self, references: Iterable[SecretRef]) -> None:
        self._references = tuple(references)
        self._seen: set[str] = set()

    def add(self, value: str) -> None:
        """Add a secret that no setting refers to, such as a token made at start."""
        if value:
            self._seen.add(value)

    def refer(self, reference: SecretRef) -> None:
        """Add a reference from another file than the settings; it is read again like the settings' own."""
        self._references = (*self._references, reference)

    def known_values(self) -> tuple[str, ...]:
        """Every current and earlier secret, longest first, without references that fail now."""
        for reference in self._references:
            try:
                self._seen.add(reference.resolve())
            except SecretUnavailable:
                continue
        return tuple(sorted(self._seen, key=lambda value: (-len(value), value)))

    def __repr__(self) -> str:
        return f"Secrets({len(self._references)} references)"
