"""Ask the server one thing at a time, and learn what came of it.

IRC confirms no message. But a server answers in order: what it has to say about a command comes before its
answer to a PING that was sent behind it.
"""

from __future__ import annotations

import asyncio
import itertools

from irctokens.line import Line

from parlour_irc.connection import IrcConnection

ANSWER_S = 20.0


class ServerRequests:
    """The requests on one connection. The reader of its lines passes each of them to `take`."""

    def __init__(self, connection: IrcConnection) -> None:
        self._connection = connection
        self._one = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._token = ""
        self._answer: asyncio.Future[list[Line]] | None = None
        self._said: list[Line] = []

    async def ask(self, *commands: tuple[str, ...]) -> list[Line]:
        """Send the commands; the server's numeric answers to them. Raises ConnectionError and TimeoutError,
        after which it is unknown whether the commands were carried out."""
        async with self._one:
            self._token = f"parlour-{next(self._numbers)}"
            self._said = []
            self._answer = answer = asyncio.get_running_loop().create_future()
            try:
                for command in commands:
                    await self._connection.send(*command)
                await self._connection.send("PING", self._token)
                async with asyncio.timeout(ANSWER_S):
                    said: list[Line] = await answer
                    return said
            finally:
                self._answer = None

    def take(self, line: Line) -> None:
        """Use a line from the server, if it belongs to a request."""
        if self._answer is None or self._answer.done():
            return
        if line.command == "PONG" and line.params[-1:] == [self._token]:
            self._answer.set_result(self._said)
        elif line.command.isdecimal() or line.command == "FAIL":
            self._said.append(line)

    def fail(self, error: Exception) -> None:
        """End the request under way: the connection is lost."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
