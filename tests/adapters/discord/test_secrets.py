"""No token shows in a log line or an error, whatever goes wrong, with every logger turned up."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest

from pipeline.domain.errors import StorageError
from tests.adapters.discord.harness import Bot, bot_for, outgoing, question, thread
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault


async def test_no_token_is_written_anywhere(
    fake: FakeDiscord, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    errors: list[BaseException] = []
    bot.inbox.failures = [StorageError("no")]
    async with bot.running():
        for kind in ("error_before", "rate_limit", "drop", "refuse_format"):
            fake.faults.script.append(Fault(method="create_message", kind=kind))
            try:
                await bot.post(chat, kind)
            except Exception as error:  # noqa: BLE001 - whatever it is, its words are read
                errors.append(error)
        part = bot.adapter.render(outgoing("ok?", questions=(question("int_1", "yes"),)))[0]
        native_id = (await bot.adapter.post(thread(chat), part, key="k")).native_id
        for method in ("interaction_callback", "interaction_callback"):
            fake.faults.script.append(Fault(method=method, kind="drop"))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(2):
                tasks.create_task(fake.press(chat, ada, native_id, "yes"))
        fake.gateway.drop_sockets()
        await fake.until(lambda: fake.gateway.resumes == 1)
        await fake.gateway.ask_to_reconnect()
        await fake.until(lambda: fake.gateway.resumes == 2)
    fake.gateway.token = "another"
    for wrong in (bot, bot_for(fake, token=fake.token + "x")):
        try:
            await wrong.adapter.run(wrong.inbox)
        except Exception as error:  # noqa: BLE001 - as above
            errors.append(error)

    assert len(errors) == 5
    reported = caplog.text + "".join("".join(traceback.format_exception(error)) for error in errors)
    shown = [bot.adapter.classify(error).message for error in errors if isinstance(error, Exception)]
    reported += "".join(shown)
    secrets = [fake.token, *(one.token for one in fake.interactions.all())]
    assert len(secrets) == 3
    assert [secret for secret in secrets if secret in reported] == []
