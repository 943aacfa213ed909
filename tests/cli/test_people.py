"""`parlour people`: invite, list and remove, beside a running gateway and without one.

Covers: gateway/cli/people.py.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.cli.people import invite, list_people, remove
from gateway.config import Settings, load
from pipeline.domain.clock import ManualClock
from tests.support.page_people import Client, Disconnected, new_token, open_page

_NOON = 1_900_065_600.0
"""2030-03-18, 12:00 UTC."""


async def _folder(tmp_path: Path) -> Settings:
    async with open_page(tmp_path):
        pass
    return load(None, {}, [f'data.dir="{tmp_path}"', 'server.public_origins=["https://bot.example"]'])


async def test_invitations_are_printed_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, clock = await _folder(tmp_path), ManualClock(_NOON)

    def use() -> None:
        assert invite(settings, name="  Ann \x1b[31m ", known="", days=7, clock=clock) == 0
        made = capsys.readouterr().out
        assert "Ann [31m can sign one browser in with this link, once, within 7 days." in made
        assert re.search(r"On other devices: https://bot\.example/#invitation=[\w-]{32}\n", made)
        assert "█" in made
        assert "\x1b" not in made
        assert invite(settings, name="ann [31M", known="", days=7, clock=clock) == 1
        assert "invited already" in capsys.readouterr().err
        assert invite(settings, name="", known="Ann [31m", days=1, clock=clock) == 0
        assert [invite(settings, name="", known="", days=1, clock=clock) for _ in range(2)] == [0, 0]
        assert invite(settings, name="", known="Carl", days=1, clock=clock) == 1
        assert "no one is called Carl" in capsys.readouterr().err
        assert list_people(settings, clock) == 0
        listed = capsys.readouterr().out.splitlines()
        assert listed[0] == "invited to the page: 3"
        assert listed[1] == (
            "  Ann [31m, not here yet, a link good until 2030-03-19 12:00 UTC, "
            "a link good until 2030-03-25 12:00 UTC"
        )
        assert [line.partition(",")[0] for line in listed[2:]] == ["  Guest", "  Guest 2"]
        assert remove(settings, "GUEST 2") == 0
        assert "Guest 2 was removed" in capsys.readouterr().out
        assert remove(settings, "Guest 2") == 1
        assert "no one is called Guest 2" in capsys.readouterr().err

    await asyncio.to_thread(use)


@pytest.mark.parametrize("days", ["0", "-1", "366", "x"])
async def test_a_link_is_good_for_a_day_to_a_year(
    tmp_path: Path, days: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await _folder(tmp_path)
    command = ["people", "invite", f"--days={days}", "--set", f'data.dir="{tmp_path}"']

    def use() -> int:
        try:
            return main(command)
        except SystemExit as ended:
            return int(str(ended.code))

    assert await asyncio.to_thread(use) == 2
    assert "--days" in capsys.readouterr().err


async def test_no_person_is_added_when_the_page_has_no_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _folder(tmp_path)
    options = ["--set", f'data.dir="{tmp_path}"', "--set", "server.port=0"]
    assert await asyncio.to_thread(main, ["people", "invite", *options]) == 2
    assert "server.port" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["people", "list", *options]) == 0
    assert capsys.readouterr().out == "invited to the page: no one\n"


async def test_a_memory_store_cannot_be_reached_from_outside(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(main, ["people", "list", "--set", 'storage.kind="memory"']) == 2
    assert "storage.kind" in capsys.readouterr().err


async def test_the_command_works_beside_a_running_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--set", f'data.dir="{tmp_path}"']
    async with open_page(tmp_path) as page, Client() as ann:
        assert await asyncio.to_thread(main, ["people", "invite", "--name", "Ann", *options]) == 0
        found = re.search(r"#invitation=(\S+)", capsys.readouterr().out)
        assert found is not None
        token = new_token()
        await ann.join(page.url, found[1], token)
        assert await asyncio.to_thread(main, ["people", "list", *options]) == 0
        assert "Firefox on Linux, last used" in capsys.readouterr().out
        assert await asyncio.to_thread(main, ["people", "remove", "Ann", *options]) == 0
        assert await ann.read_to_the_end() == 4403
        with pytest.raises(Disconnected, match="wrong_token"):
            await ann.connect(page.url, token)
