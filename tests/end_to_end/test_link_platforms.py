"""/link on real channels: the page with Telegram, and Telegram with Slack and Discord, as people see it.

Covers: gateway/app/commands.py, gateway/people/announcements.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.all_platforms import AllPlatforms, open_all_platforms
from tests.support.gateway_process import free_port
from tests.support.link_talk import code_in
from tests.support.platforms.platform import FakePlatform
from tests.support.web_client import WebChat


def _dear() -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=1_000) for _ in range(4)])


def _texts(platform: FakePlatform, name: str = "ann") -> list[str]:
    return platform.bot_texts(platform.private_chat(platform.person(name)))


async def _say(platform: FakePlatform, text: str, name: str = "ann") -> str:
    """Say it in the person's private chat; the next text of the bot there."""
    person = platform.person(name)
    before = len(_texts(platform, name))
    await platform.say(platform.private_chat(person), person, text)
    await platform.until(lambda: len(_texts(platform, name)) > before)
    return _texts(platform, name)[-1]


async def _shows(platform: FakePlatform, words: str) -> None:
    await platform.until(lambda: any(words in text for text in _texts(platform)))


async def _notice(page: WebChat, client_id: str, text: str) -> str:
    """Send it on the page; the line that answers it."""
    await page.send_text(client_id, text)
    message_id = await page.accepted(client_id)
    while not (found := page.seen.lines_of(message_id, "notice")):
        await page.receive()
    return found[0].text


async def test_a_person_links_telegram_with_slack_and_discord_and_has_one_budget(tmp_path: Path) -> None:
    async with open_all_platforms(tmp_path, "budget.person_tokens=900", llm=_dear()) as place:
        assert await _say(place.telegram, "hi") == "Dear."
        code = code_in(await _say(place.telegram, "/link"))
        assert "your chat on Telegram belong to one person" in await _say(place.slack, f"/link {code}")
        await _shows(place.telegram, "A chat on Slack")
        assert "is used up" in await _say(place.slack, "hi")
        assert await _say(place.discord, "hi") == "Dear.", "this chat is not linked yet"

        code = code_in(await _say(place.slack, "/link"))
        assert "your chats on Slack and Telegram" in await _say(place.discord, f"/link {code}")
        await _shows(place.telegram, "A chat on Discord")
        await _shows(place.slack, "A chat on Discord")
        assert "no longer linked with your chats on" in await _say(place.discord, "/unlink")
        assert "is used up" in await _say(place.discord, "hi")
        assert await _say(place.slack, "hi", "ben") == "Dear."
        people = await _people(place)
        assert people["telegram"] == people["slack"]
        assert "discord" not in people


async def test_the_owner_of_the_page_links_it_with_telegram_and_unlinks_it(tmp_path: Path) -> None:
    web = ("channels.web.enabled=true", f"server.port={free_port()}", "budget.person_tokens=900")
    async with open_all_platforms(tmp_path, *web, llm=_dear()) as place, WebChat() as page:
        token = (tmp_path / "data" / "web-token").read_text(encoding="ascii").strip()
        url = place.harness.gateway.url
        await page.connect(url, token)
        code = code_in(await _notice(page, "c1", "/link"))
        assert "your chat on the web page belong to one person" in await _say(place.telegram, f"/link {code}")
        shown = await page.wait_for(_is_line("has been linked with this one"))
        assert shown["role"] == "notice"
        assert await _say(place.telegram, "hi") == "Dear."
        await page.send_text("c2", "hi")
        assert (await page.terminal(await page.accepted("c2"))).code == "budget"
        assert "no longer linked with your chat on Telegram" in await _notice(page, "c3", "/unlink")

        again = await page.connect(url, token, after=0)
        lines = [str(frame["text"]) for frame in again if frame["type"] == "entry"]
        assert not any(code in line for line in lines), "a code is not in the history"
        assert "" not in lines


def _is_line(words: str) -> Callable[[dict[str, object]], bool]:
    return lambda frame: frame["type"] == "entry" and words in str(frame["text"])


async def _people(place: AllPlatforms) -> dict[str, str]:
    linked = await place.harness.store.identities.linked()
    return {identity.channel: person for identity, person in linked.items()}
