"""Talk to a running gateway from Python, over the protocol of docs/web-protocol.md.

    python -m examples.webchat_client --token-file data/web-token "What is a lease?"

One question, one answer, printed as it is written. It is not a library: a real client keeps its chat
id and its last entry_id, connects again after a break, and sends unanswered messages once more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PROTOCOL_VERSION = 1
DEADLINE_S = 300.0


class Refused(Exception):
    """The gateway refused something; its own words are the text."""


async def ask(url: str, token: str, question: str) -> int:
    """Send `question` in a new chat and print the answer; exit code 0, or 1 when it ended in an error."""
    async with (
        asyncio.timeout(DEADLINE_S),
        aiohttp.ClientSession() as http,
        # A browser sends Origin by itself; anyone else names the gateway's own.
        http.ws_connect(f"{url}/ws", origin=url) as socket,
    ):
        frames = received(socket)
        # The token travels in the first frame: never in a URL, where logs would keep it.
        await socket.send_json({"type": "hello", "protocol": PROTOCOL_VERSION, "token": token, "chat": None})
        async for frame in frames:
            if frame["type"] == "ready":
                break
        # Random, so that sending the same message again after a break counts once.
        client_id = secrets.token_hex(8)
        await socket.send_json({"type": "message", "client_id": client_id, "text": question})
        return await show_answer(frames)


async def received(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[dict[str, Any]]:
    """The gateway's frames until it closes. Raises Refused for a problem."""
    async for message in socket:
        frame: dict[str, Any] = json.loads(message.data)
        if frame["type"] == "problem":
            raise Refused(frame["message"])
        yield frame


async def show_answer(frames: AsyncIterator[dict[str, Any]]) -> int:
    """Print the live answer until its terminal event. Frames and events that are not known are skipped."""
    shown = 0
    async for frame in frames:
        event = frame.get("event", {})
        if event.get("type") == "llm_token" and event["offset"] == shown:
            sys.stdout.write(event["text"])
            sys.stdout.flush()
            shown += len(event["text"])
        elif event.get("type") == "response_complete":
            # Live pieces may be dropped for a slow reader; the terminal event has the whole text.
            sys.stdout.write(f"{event['content'][shown:]}\n")
            return 0
        elif event.get("type") == "error":
            raise Refused(event["message"])
    raise Refused("the gateway closed the connection before the answer was complete")


def main() -> int:
    """Read the command line and ask."""
    parser = argparse.ArgumentParser(description="Ask a running Parlour gateway one question.")
    parser.add_argument("--url", default="http://127.0.0.1:8765", help="the gateway's address")
    parser.add_argument("--token-file", type=Path, default=Path("data/web-token"), help="where its token is")
    parser.add_argument("question")
    options = parser.parse_args()
    try:
        token = options.token_file.read_text(encoding="ascii").strip()
        return asyncio.run(ask(options.url.rstrip("/"), token, options.question))
    except (Refused, OSError, aiohttp.ClientError, TimeoutError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
