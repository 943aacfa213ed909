"""kill -9 at the redemption of an invitation: the browser gets in with its next try, and no other one does.

Covers: gateway/people/page_people.py, gateway/storage/sqlite/page_people.py.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway.cli.main import main
from tests.support.gateway_process import GatewayProcess, slow_echo
from tests.support.page_people import Client, Disconnected, new_token

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("label", ["redeem-before", "redeem-after"])
async def test_an_invitation_is_used_once_and_by_its_own_browser(
    tmp_path: Path, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with GatewayProcess(tmp_path, overrides=slow_echo(0.0)) as gateway:
        await gateway.start(crash_at=f"{label}:1")
        options = ["--set", f'data.dir="{gateway.data_dir}"']
        assert await asyncio.to_thread(main, ["people", "invite", "--name", "Ann", *options]) == 0
        found = re.search(r"#invitation=(\S+)", capsys.readouterr().out)
        assert found is not None
        token = new_token()
        async with Client() as ann, Client() as eve:
            with pytest.raises(Disconnected):
                await ann.join(gateway.url, found[1], token)
            assert await gateway.wait_exit() == 137
            await gateway.start()
            await ann.join(gateway.url, found[1], token)
            await ann.connect(gateway.url, token)
            with pytest.raises(Disconnected, match="wrong_invitation"):
                await eve.join(gateway.url, found[1], new_token())
