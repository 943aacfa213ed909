"""`python -m bench.talk [ROUNDS]`: talking to the page, measured in a real browser.

Its microphone plays a sentence of 5 s. Measured are the time from the end of the voice to the message, and
from the beginning of a voice to the last word of the answer that it interrupts: the times at which sound
and frames pass the page's socket. The gateway, Whisper and the browser share the machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page

from bench.report import ROOT, BenchUnavailable, Report, median, scratch_folder
from tests.support.browser import find_chromium, why_no_chromium
from tests.support.browser_fixture import open_chromium
from tests.support.gateway_process import GatewayProcess, free_port
from tests.support.live_page import open_page, passed, recording, voice
from tests.voice.clips import CLIPS
from voice.wer import word_error_rate

CLIP = CLIPS["lv_0890"]
_ROUNDS = 5
_PATIENCE_MS = 60_000
_LONG = "tides " * 1_000
_PASSED = "type => window.passed.some(({ frame }) => (frame?.event ?? frame)?.type === type)"


async def run(rounds: int = _ROUNDS) -> Report:
    """Talk so many times. Raises BenchUnavailable without Chromium."""
    if find_chromium() is None:
        raise BenchUnavailable(why_no_chromium())
    models = f"models.dir={json.dumps(str(ROOT / 'models'))}"
    with scratch_folder() as folder:
        overrides = (models, 'llm.model="scripted:echo:delay=0.01"')
        async with (
            GatewayProcess(
                folder / "gateway", overrides=overrides, port=free_port(), executed=True
            ) as gateway,
            open_chromium(_microphone(folder)) as browser,
        ):
            await gateway.start()
            sentences = [await _in_a_fresh_chat(browser, gateway, interrupt=False) for _ in range(rounds)]
            stops = [await _in_a_fresh_chat(browser, gateway, interrupt=True) for _ in range(rounds)]
    firsts = [first for first, _ in sentences]
    finals = [final for _, final in sentences]
    tokens = [token for token, _ in stops]
    ends = [end for _, end in stops]
    columns = {
        "beginning of the voice to the first words": firsts,
        "end of the voice to the message": finals,
        "beginning of a voice to the answer's last word": tokens,
        "beginning of a voice to the answer's end, recorded": ends,
    }
    return Report(
        bench="talk",
        title=f"talk: a sentence of 5 s into the page's microphone, {rounds} rounds",
        head=("", "median", "max"),
        rows=[
            (name, f"{median(values) * 1e3:.0f} ms", f"{max(values) * 1e3:.0f} ms")
            for name, values in columns.items()
        ],
        figures={
            "first_words_s": round(median(firsts), 3),
            "final_s": round(median(finals), 3),
            "final_max_s": round(max(finals), 3),
            "barge_in_ms": round(median(tokens) * 1e3),
            "barge_in_max_ms": round(max(tokens) * 1e3),
        },
    )


def _microphone(folder: Path) -> Path:
    return recording(folder / "sentence.wav", CLIP, before_s=1.0, after_s=60.0)


async def _in_a_fresh_chat(
    browser: Browser, gateway: GatewayProcess, *, interrupt: bool
) -> tuple[float, float]:
    context = await browser.new_context()
    try:
        return await (_interrupt if interrupt else _say)(context, gateway)
    finally:
        await context.close()


async def _say(context: BrowserContext, gateway: GatewayProcess) -> tuple[float, float]:
    """Seconds to the first words from the beginning of the voice, and to the message from its end."""
    page = await open_page(context, gateway)
    await _talk_until(page, "speech_final")
    moments = await passed(page)
    began, ended = voice(moments)
    first = next(moment for moment in moments if moment.type == "speech_partial")
    final = next(moment for moment in moments if moment.type == "speech_final")
    wrong = word_error_rate(CLIP.transcript, final.fields["text"])
    if wrong > 0.15:
        raise BenchUnavailable(f"the sentence was not understood: {final.fields['text']}")
    return first.at - began, final.at - ended


async def _interrupt(context: BrowserContext, gateway: GatewayProcess) -> tuple[float, float]:
    """Seconds from the beginning of the voice to the last word of the answer, and to its durable end."""
    page = await open_page(context, gateway)
    await page.get_by_test_id("composer").fill(_LONG)
    await page.get_by_test_id("composer").press("Enter")
    await page.wait_for_function(_PASSED, arg="llm_token")
    await _talk_until(page, "error")
    moments = await passed(page)
    began, _ = voice(moments)
    end = next(moment for moment in moments if moment.type == "error")
    token = [moment for moment in moments if moment.type == "llm_token" and moment.at < end.at][-1]
    return token.at - began, end.at - began


async def _talk_until(page: Page, kind: str) -> None:
    await page.get_by_test_id("talk").click()
    await page.wait_for_function(_PASSED, arg=kind, timeout=_PATIENCE_MS)


def main() -> int:
    """Measure and print; the number of rounds may be given."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    try:
        print(asyncio.run(run(rounds)).text())
    except BenchUnavailable as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
