"""The guide says what the code does: its settings exist, its figures and quoted words are the code's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

import pytest

from adapters.formatting.overflow import FILE_NAME, MAX_PARTS
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.rate_limits import DEFAULT_RATES
from adapters.telegram.settings import TelegramOptions
from adapters.telegram.webhook import MAX_BODY
from gateway.config.channels import TelegramSettings as ConfigSection
from pipeline.domain.clock import SystemClock

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/guides/telegram.md").read_text(encoding="utf-8")
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "adapters/telegram").glob("*.py"))


def test_every_setting_in_the_examples_exists() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    used = {key for block in blocks for key in tomllib.loads(block)["channels"]["telegram"]}
    assert used >= {"token", "access", "allow", "deny", "mode", "webhook_url", "webhook_secret"}
    assert used <= set(ConfigSection.model_fields)


def test_every_setting_in_the_text_exists() -> None:
    named = set(re.findall(r"`([a-z_]+)(?: = [^`]*)?`", GUIDE))
    assert named & set(ConfigSection.model_fields) >= {"rooms", "previews", "replies", "rate", "api_base"}
    assert named <= set(ConfigSection.model_fields) | {"dm", "room", "refused", "bot", "our_parlour_bot"}


@pytest.mark.parametrize(
    "words",
    [
        "another process receives with this bot's token (409)",
        "Telegram asks to wait",
        "Telegram cannot deliver to channels.telegram.webhook_url",
        "Telegram cannot be reached",
        "if it was revoked, get the new one",
    ],
)
def test_quoted_words_are_the_codes_own(words: str) -> None:
    assert words in GUIDE
    assert words in SOURCE


def test_the_figures_are_the_codes() -> None:
    assert f"more than {MAX_PARTS} messages" in GUIDE
    assert f"`{FILE_NAME}`" in GUIDE
    assert (DEFAULT_RATES.chat_per_s, DEFAULT_RATES.room_per_minute, DEFAULT_RATES.account_per_s) == (
        1,
        20,
        30,
    )
    assert "one message a second in a chat, 20 a minute in a group, 30 a second in all" in GUIDE
    assert MAX_BODY == 1024 * 1024


@pytest.mark.parametrize("replies", ["post", "edit", "plain"])
def test_the_promise_of_each_mode_is_the_one_that_the_doctor_prints(
    replies: Literal["post", "edit", "plain"],
) -> None:
    settings = TelegramOptions(token=lambda: "", replies=replies)
    promise = TelegramAdapter(settings, SystemClock()).capabilities.guarantee
    first = promise.split(":")[0].lower()
    assert f'`"{replies}"`' in GUIDE
    assert first in GUIDE.lower()
