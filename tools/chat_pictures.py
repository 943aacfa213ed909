"""Draws docs/images/chat-{telegram,slack,discord}.png: the bot's messages, read back from the fake platforms.

    .venv/bin/python -m tools.chat_pictures

Real adapters and SDKs are connected to the fake platforms of the tests; the answers are scripted. The frame
around the messages is a neutral drawing, not the platform's design.
"""

from __future__ import annotations

import asyncio
import html
import json
import tempfile
from pathlib import Path

from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.all_platforms import open_all_platforms
from tests.support.browser_fixture import open_chromium
from tests.support.platforms.platform import FakePlatform, Place, Shown
from voice.transcription.scripted_transcriber import ScriptedTranscriber

IMAGES = Path(__file__).parents[1] / "docs" / "images"
NOTE = b"OggS" + bytes(400)
MIME = {"telegram": "audio/ogg", "slack": "audio/mp4", "discord": "audio/ogg"}
SPOKEN = "What should I pack for two days in the mountains?"
PACKING = (
    "For two days in the mountains:\n\n- a rain jacket and a warm layer\n- water for half a day\n"
    "- a map that needs no battery\n\nShall I keep the list for you?"
)
LIST = "rain jacket\nwarm layer\nwater\nmap\n"
STYLE = """
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; background: #fff; }
main { width: 560px; padding: 20px; background: #eef1f4; display: flex; flex-direction: column; gap: 10px; }
h1 { margin: 0 0 4px; font-size: 13px; color: #55606b; font-weight: 600; }
p { margin: 0; padding: 9px 13px; border-radius: 14px; max-width: 80%; }
p { white-space: pre-wrap; overflow-wrap: anywhere; }
p.bot { background: #fff; align-self: flex-start; } p.person { background: #cfe3ff; align-self: flex-end; }
div { display: flex; flex-wrap: wrap; gap: 8px; }
span { padding: 6px 16px; border: 1px solid #9aa7b4; border-radius: 8px; background: #fff; font-weight: 600; }
"""


async def main() -> None:
    """Run one conversation on each platform and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        llm = ScriptedLlm()
        async with open_all_platforms(
            Path(folder), llm=llm, transcriber=ScriptedTranscriber.always(SPOKEN)
        ) as place:
            for platform, chat in place.private():
                await _talk(platform, chat, llm)
            shown = {platform.name: platform.visible(chat) for platform, chat in place.private()}
    async with open_chromium() as browser:
        page = await browser.new_page(viewport={"width": 600, "height": 400}, device_scale_factor=2)
        for name, messages in shown.items():
            await page.set_content(_drawn(name, messages))
            await page.locator("main").screenshot(path=IMAGES / f"chat-{name}.png")


async def _talk(platform: FakePlatform, chat: Place, llm: ScriptedLlm) -> None:
    ann = platform.person("ann")
    llm.script += (
        ScriptedAnswer.of(PACKING),
        _calling("load_tools", groups=["files"]),
        _calling("write_file", path="packing.txt", text=LIST),
    )
    await platform.speak(chat, ann, NOTE, mime=MIME[platform.name])
    await platform.until(lambda: any("needs no battery" in text for text in platform.bot_texts(chat)))
    await platform.say(chat, ann, "Yes please, as packing.txt")
    await platform.until(lambda: any(one.buttons for one in platform.visible(chat)))


def _calling(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _drawn(name: str, messages: tuple[Shown, ...]) -> str:
    rows = "".join(map(_row, messages))
    return f"<style>{STYLE}</style><main><h1>{name.capitalize()}</h1>{rows}</main>"


def _row(shown: Shown) -> str:
    text = html.escape(shown.text or "\N{STUDIO MICROPHONE} voice note, 0:04")
    buttons = "".join(f"<span>{html.escape(label)}</span>" for label in shown.buttons)
    return f'<p class="{"person" if shown.author else "bot"}">{text}</p>' + (
        buttons and f"<div>{buttons}</div>"
    )


if __name__ == "__main__":
    asyncio.run(main())
