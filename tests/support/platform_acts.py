"""What a person does and reads on any of the three fake platforms, and how they send files there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Place, Shown
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

_PNG = "image/png"
_OGG = "audio/ogg"


def bot_said(platform: FakePlatform, chat: Place, after: int, words: str) -> bool:
    """Whether a message of the bot behind the first `after` ones contains `words`."""
    return any(words in one for one in platform.bot_texts(chat)[after:])


def with_button(platform: FakePlatform, chat: Place, label: str) -> Shown | None:
    """The message with that button."""
    return next((one for one in platform.visible(chat) if label in one.buttons), None)


async def press(platform: FakePlatform, chat: Place, label: str) -> None:
    """Ann presses the button, once it is there."""
    await platform.until(lambda: with_button(platform, chat, label) is not None)
    shown = with_button(platform, chat, label)
    assert shown is not None
    await platform.press(chat, platform.person("ann"), shown.native_id, label)


async def ask(platform: FakePlatform, chat: Place, text: str, answer: str) -> None:
    """Ann writes `text` and waits for a message with `answer`."""
    before = len(platform.bot_texts(chat))
    await platform.say(chat, platform.person("ann"), text)
    await platform.until(partial(bot_said, platform, chat, before, answer))


async def give(platform: FakePlatform, chat: Place, name: str, argument: str = "") -> None:
    """Give a command as the platform's app does it: from its list of the bot's commands."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            # The bot registers its commands behind its start.
            await platform.until(lambda: any(one["name"] == name for one in platform.rest.commands))
            await platform.command(chat, ann, name, argument)
        case FakeSlack():
            await platform.command(chat, ann, f"{name} {argument}".strip())
        case FakeTelegram():
            listed = platform.state.commands
            await platform.until(lambda: any(one["command"] == name for one in listed.get("", ())))
            await platform.say(chat, ann, f"/{name} {argument}".strip())
        case _:
            raise NotImplementedError(platform.name)


async def forward_note(platform: FakePlatform, chat: Place, sound: bytes) -> None:
    """Ann forwards a voice note of Ben's in the platform's own way."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            await platform.forward_note(chat, ann, sound, mime=_OGG)
        case FakeSlack():
            clip = platform.file(
                ann, sound, mime="audio/mp4", subtype="slack_audio", name="audio_message.m4a"
            )
            await platform.forward(chat, ann, [clip])
        case FakeTelegram():
            platform.send(chat, ann, "voice", sound, forwarded=True, duration=1, mime_type=_OGG)
        case _:
            raise NotImplementedError(platform.name)


async def send_pictures(platform: FakePlatform, chat: Place, caption: str, pictures: Sequence[bytes]) -> str:
    """Ann sends pictures in one message; on Telegram an album, whose parts come one by one. Its id."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            files = [platform.file(f"{number}.png", one, _PNG) for number, one in enumerate(pictures)]
            return await platform.send(chat, ann, caption, files=files)
        case FakeSlack():
            return await platform.share_all(
                chat, ann, [platform.file(ann, one, mime=_PNG) for one in pictures], text=caption
            )
        case FakeTelegram():
            album = f"album{len(platform.state.files)}" if len(pictures) > 1 else ""
            first, *rest = pictures
            sent = platform.send(chat, ann, "photo", first, caption=caption, album=album, width=90)
            for one in rest:
                platform.send(chat, ann, "photo", one, album=album, width=90)
            return sent
        case _:
            raise NotImplementedError(platform.name)


async def send_file(
    platform: FakePlatform, chat: Place, name: str, content: bytes, mime: str, caption: str = ""
) -> None:
    """Ann sends a file under its name, not as a photo or a voice note."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            await platform.upload(chat, ann, caption, name, content, mime)
        case FakeSlack():
            await platform.share(chat, ann, content, mime=mime, name=name, text=caption)
        case FakeTelegram():
            kind = "audio" if mime.startswith("audio/") else "document"
            platform.send(chat, ann, kind, content, caption=caption, file_name=name, mime_type=mime)
        case _:
            raise NotImplementedError(platform.name)


async def forward_picture(platform: FakePlatform, chat: Place, picture: bytes) -> None:
    """Ann forwards a picture of Ben's in the platform's own way, and writes nothing."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            await platform.forward(chat, ann, [platform.file("ben.png", picture, _PNG)])
        case FakeSlack():
            await platform.forward(chat, ann, [platform.file(ann, picture, mime=_PNG)])
        case FakeTelegram():
            platform.send(chat, ann, "photo", picture, forwarded=True, width=90)
        case _:
            raise NotImplementedError(platform.name)


async def keep_pictures(
    platform: FakePlatform, chat: Place, native_id: str, caption: str, kept: int, added: Sequence[bytes] = ()
) -> None:
    """Ann edits her message: the first `kept` pictures stay, others are added. On Telegram she
    replaces the first picture of the album, as only that can be done there."""
    ann = platform.person("ann")
    match platform:
        case FakeDiscord():
            message = platform.world.get(chat.chat, native_id)
            assert message is not None
            files = [*message.files[:kept], *(platform.file("more.png", one, _PNG) for one in added)]
            await platform.rewrite(chat, native_id, caption, files=files)
        case FakeSlack():
            posted = platform.workspace.find(*native_id.split(":"))
            assert posted is not None
            more = [platform.file(ann, one, mime=_PNG) for one in added]
            await platform.change_files(native_id, [*posted.files[:kept], *more])
        case FakeTelegram():
            (picture,) = added
            platform.replace_media(chat, native_id, "photo", picture, caption)
        case _:
            raise NotImplementedError(platform.name)
