"""A newcomer's way: a token in the TOML, `parlour serve`, a code, `parlour pair`, an answer."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway.config import environment
from tests.support.gateway_forks import run_forked
from tests.support.gateway_process import SCRIPTED, GatewayProcess, up
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

pytestmark = pytest.mark.crash

_PATIENCE_S = 270.0
CODE = re.compile(r"parlour pair ([A-Z0-9]{4}-?[A-Z0-9]{4})")


@pytest.mark.parametrize("make", [FakeTelegram, FakeSlack, FakeDiscord])
async def test_with_a_token_alone_a_stranger_gets_a_code_and_with_it_an_answer(
    tmp_path: Path, make: type[FakeTelegram | FakeSlack | FakeDiscord]
) -> None:
    platform: FakePlatform = make()
    async with platform:
        given = [one for one in platform.overrides(tmp_path) if ".access=" not in one]
        settings = (*SCRIPTED, "log.level=debug", *given)
        async with GatewayProcess(tmp_path, overrides=settings, executed=make is FakeTelegram) as gateway:
            await gateway.start()
            ann = platform.person("ann")
            chat = platform.private_chat(ann)
            await up(gateway, platform.name)
            await platform.say(chat, ann, "hello?")
            await platform.until(lambda: any(map(CODE.search, platform.bot_texts(chat))))
            found = CODE.search(platform.bot_texts(chat)[0])
            assert found is not None
            await platform.say(chat, ann, "hello??")

            printed = await _parlour(gateway, "pair", found.group(1), "--yes")
            assert ann.id in printed

            await platform.say(chat, ann, "and now?")
            await platform.until(lambda: "You said: and now?" in platform.bot_texts(chat))
            assert len(platform.bot_texts(chat)) == 2, "one line for the stranger, one answer for the guest"
            for secret in _secrets(given):
                assert secret not in gateway.log() + printed


def _secrets(given: list[str]) -> list[str]:
    """What is in the files that the settings refer to."""
    paths = [line.partition("file:")[2].rstrip('"') for line in given if "file:" in line]
    assert paths
    return [Path(path).read_text(encoding="ascii").strip() for path in paths]


async def _parlour(gateway: GatewayProcess, *arguments: str) -> str:
    """Run the command line beside the running gateway; what it printed."""
    env = {name: value for name, value in environment().items() if not name.startswith("PARLOUR")}
    command = (*arguments, "--set", f"data.dir={gateway.data_dir}")
    done = await asyncio.to_thread(
        run_forked, command, folder=gateway.folder, env=env, typed="", limit_s=_PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
