"""Talking to the page in a real Chromium: a microphone that plays a recording, and when each frame passed.

Not the browser itself; that is `browser_fixture`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from playwright.async_api import BrowserContext, Page, expect

from tests.support.gateway_process import GatewayProcess
from tests.support.web_client import WebChat
from tests.voice.clips import Clip, samples_of, wav

_CLIP_HZ, _MICROPHONE_HZ = 16_000, 48_000
_VOICE = 0.015
"""Loudness (root of the mean square, full scale 1) of 10 ms that belong to a word of the clips."""

_NOTE_FRAMES = r"""() => {
  // Every frame of the page's socket with the moment at which it passed, in milliseconds.
  window.passed = [];
  const note = (of) => window.passed.push({ at: performance.now(), ...of });
  const power = (samples) => samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (data instanceof ArrayBuffer) {
      const samples = new Int16Array(data);
      const loud = [];
      for (let at = 0; at < samples.length; at += 160) {
        loud.push(Math.sqrt(power(samples.subarray(at, at + 160))) / 32768);
      }
      note({ kind: 'sound', seconds: samples.length / 16000, loud });
    } else if (typeof data === 'string') note({ kind: 'sent', frame: JSON.parse(data) });
    return send.call(this, data);
  };
  const Real = WebSocket;
  window.WebSocket = class extends Real {
    constructor(...all) {
      super(...all);
      this.addEventListener('message', ({ data }) => {
        if (typeof data !== 'string') return;
        for (const frame of [JSON.parse(data)].flat()) note({ kind: 'received', frame });
      });
    }
  };
  document.addEventListener('pause', () => note({ kind: 'silent' }), { capture: true });
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One moment of the page. `at` is in seconds of the page's clock."""

    at: float
    kind: Literal["sound", "sent", "received", "silent"]
    """Sound or a frame that went out, a frame that came, a player that fell silent."""
    type: str = ""
    """The frame's type; of an event or of live speech, that one's."""
    fields: dict[str, Any]


def recording(path: Path, clip: Clip, *, before_s: float, after_s: float) -> Path:
    """The clip with silence around it, at the rate that Chromium's fake microphone wants."""
    samples = np.frombuffer(samples_of(clip), np.int16)
    places = np.arange(len(samples) * _MICROPHONE_HZ // _CLIP_HZ) * _CLIP_HZ / _MICROPHONE_HZ
    speech = np.interp(places, np.arange(len(samples)), samples).astype(np.int16)
    quiet = [np.zeros(int(seconds * _MICROPHONE_HZ), np.int16) for seconds in (before_s, after_s)]
    path.write_bytes(wav(np.concatenate([quiet[0], speech, quiet[1]]).tobytes(), rate=_MICROPHONE_HZ))
    return path


async def open_page(context: BrowserContext, gateway: GatewayProcess, *, hands_free: bool = True) -> Page:
    """A signed-in page with a new chat, whose frames are recorded."""
    async with WebChat() as chat:
        await chat.connect(gateway.url, gateway.token)
        own = chat.chat
    page = await context.new_page()
    await page.add_init_script(f"({_NOTE_FRAMES})()")
    await page.goto(gateway.url)
    # A new browser would open the most recent chat, which belongs to another test.
    await page.evaluate("chat => localStorage.setItem('parlour.chat', chat)", own)
    if not hands_free:
        await page.evaluate("localStorage.setItem('parlour.handsFree', 'no')")
    await page.reload()
    await page.get_by_test_id("token-input").fill(gateway.token)
    await page.get_by_test_id("sign-in").click()
    await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "ready")
    return page


async def passed(page: Page) -> list[Passed]:
    """What has passed so far, oldest first."""
    found: list[Passed] = []
    for moment in await page.evaluate("window.passed"):
        at, kind = moment.pop("at") / 1000, moment.pop("kind")
        frame = moment.pop("frame", moment)
        inner = frame.get("event", frame)
        found.append(Passed(at=at, kind=kind, type=inner.get("type", ""), fields=inner))
    return found


def voice(moments: list[Passed]) -> tuple[float, float]:
    """When the voice that went out began and ended, in seconds of the page's clock."""
    loud = [
        moment.at - moment.fields["seconds"] + 0.01 * (number + 1)
        for moment in moments
        if moment.kind == "sound"
        for number, loudness in enumerate(moment.fields["loud"])
        if loudness > _VOICE
    ]
    return loud[0] - 0.01, loud[-1]
