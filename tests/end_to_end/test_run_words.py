"""/run says how a workflow is offered where there is none, in the language of its reader.

Covers: gateway/turns/run_command.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import open_gateway


@pytest.mark.parametrize(
    ("spoken", "words"),
    [
        ("", "The operator of this bot offers one in a chat by a route"),
        ("de", "bietet ihn in einem Chat mit einer Route an"),
        ("fr", "en propose un dans une discussion par une route"),
        ("es", "ofrece uno en un chat mediante una ruta"),
        ("it", "The operator of this bot offers one in a chat by a route"),
    ],
)
async def test_run_without_workflows_says_how_a_route_offers_one(
    tmp_path: Path, spoken: str, words: str
) -> None:
    settings = (f'agent.language="{spoken}"',) if spoken else ()
    async with open_gateway(tmp_path, *settings) as harness:
        asked = await harness.channel.say("/run")
        assert words in (await harness.channel.reply(asked.message_id)).text
