"""Files of an answer on the page of a real gateway: shown, enlarged, downloaded, and there after a reload."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from pipeline.llm.scripted import ScriptedLlm
from tests.end_to_end.page.accessibility import serious_violations
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.probes import NAMELESS, POOR_CONTRAST
from tests.end_to_end.page.worker_port import port_setting
from tests.support.browser_fixture import Watch
from tests.support.file_talk import SAID, sending, share
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.pictures import png

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_NATURAL = "image => image.naturalWidth"
_HOSTILE = b"<svg xmlns='http://www.w3.org/2000/svg'><script>window.pwned = true</script></svg>"
_WAVE = (
    b"RIFF\x64\x1f\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"
    b"\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data"
)
_SOUND = _WAVE + (8_000).to_bytes(4, "little") + b"\x80" * 8_000
_NAMES = ("chart.png", "tone.wav", "photo.svg", "report.csv")


def _web() -> tuple[str, ...]:
    return ("channels.web.enabled=true", port_setting())


async def _sign_in(page: Page, harness: GatewayHarness, data: Path) -> None:
    await page.goto(harness.gateway.url)
    await sign_in(page, (data / "web-token").read_text(encoding="ascii").strip())


async def _shown(files: Locator) -> None:
    """The picture is there with its size, the sound can be played, the rest are downloads."""
    await expect(files.locator("figure")).to_have_count(4)
    picture = files.get_by_role("button", name="Enlarge the picture: Caption 0").locator("img")
    await expect(picture).to_be_visible()
    await picture.evaluate("image => image.decode()")
    assert await picture.evaluate(_NATURAL) == 640
    await expect(files.locator("figcaption").first).to_have_text("Caption 0")
    player = files.locator("audio")
    await expect(player).to_have_attribute("controls", "")
    await player.evaluate("player => player.duration || new Promise((ok) => player.onloadedmetadata = ok)")
    rows = files.locator("a.download")
    await expect(rows).to_have_text(["photo.svg82 bytes", "report.csv8 bytes"])


async def test_files_are_shown_with_the_answer_and_after_a_reload(
    page: Page, watch: Watch, tmp_path: Path
) -> None:
    for name, content in zip(_NAMES, (png(640, 400), _SOUND, _HOSTILE, b"a,b\n1,2\n"), strict=True):
        share(tmp_path, name, content)
    llm = ScriptedLlm(sending(*_NAMES))
    async with open_gateway(tmp_path, *_web(), llm=llm) as harness:
        await _sign_in(page, harness, tmp_path)
        await send(page, "send them")
        answer = entries(page, "assistant")
        await expect(answer).to_contain_text(SAID)
        await _shown(answer.get_by_test_id("files"))
        assert await page.evaluate(NAMELESS) == []
        assert await page.evaluate(POOR_CONTRAST) == []
        assert await serious_violations(page) == []

        # By keyboard: enlarge, and close again.
        await answer.get_by_role("button", name="Enlarge the picture: Caption 0").press("Enter")
        dialog = page.get_by_role("dialog")
        await expect(dialog.locator("img")).to_be_visible()
        assert await serious_violations(page) == []
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)

        async with page.expect_download() as began:
            await answer.get_by_role("link", name="photo.svg").click()
        download = await began.value
        assert download.suggested_filename == "photo.svg"
        assert await asyncio.to_thread((await download.path()).read_bytes) == _HOSTILE

        await page.reload()
        await ready(page)
        await _shown(entries(page, "assistant").get_by_test_id("files"))
        assert not await page.evaluate("window.pwned")
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []
