"""The port of everything that begins work in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

_ResultT = TypeVar("_ResultT")


class Spawn(Protocol):
    """Runs work in a task that ends with the process at the latest, like the gateway's supervisor."""

    def __call__(self, work: Coroutine[Any, Any, _ResultT], *, name: str) -> asyncio.Task[_ResultT]: ...
