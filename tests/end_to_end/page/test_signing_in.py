"""Getting in: the token card, wrong tokens, and an address bar that has no say."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ready, sign_in, sign_out
from tests.end_to_end.page.fake_gateway import TOKEN, FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_the_right_token_opens_the_conversation(page: Page, gateway: FakeGateway) -> None:
    await page.goto(gateway.origin)
    await expect(page.get_by_text("printed when the gateway started")).to_be_visible()
    await sign_in(page)
    await expect(page.get_by_test_id("composer")).to_be_focused()
    await expect(page.get_by_test_id("token-input")).to_be_hidden()
    hello = {"type": "hello", "protocol": 1, "batch": True, "token": TOKEN, "chat": "latest", "after": 0}
    hello["language"] = "en"
    assert gateway.hellos == [hello]


async def test_a_wrong_token_is_refused_in_words_and_not_kept(page: Page, gateway: FakeGateway) -> None:
    await page.goto(gateway.origin)
    await page.get_by_test_id("token-input").fill("guess")
    await page.get_by_test_id("sign-in").click()
    await expect(page.get_by_role("alert")).to_contain_text("This token is not right")
    assert await page.evaluate("localStorage.getItem('parlour.token')") is None
    await sign_in(page)


async def test_a_lockout_is_reported(page: Page, gateway: FakeGateway) -> None:
    gateway.locked = True
    await page.goto(gateway.origin)
    await page.get_by_test_id("token-input").fill(TOKEN)
    await page.get_by_test_id("sign-in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Too many wrong tokens. Wait a minute")
    await expect(page.get_by_test_id("sign-in")).to_be_enabled()


async def test_a_gateway_that_is_down_is_reported(page: Page, gateway: FakeGateway) -> None:
    await page.goto(gateway.origin)
    gateway.down = True
    await page.get_by_test_id("token-input").fill(TOKEN)
    await page.get_by_test_id("sign-in").click()
    await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    gateway.down = False
    await sign_in(page)


async def test_the_token_is_remembered_until_signing_out(room: Page, gateway: FakeGateway) -> None:
    await room.reload()
    await ready(room)
    assert len(gateway.hellos) == 2
    await sign_out(room)
    await expect(room.get_by_test_id("token-input")).to_be_visible()
    assert await room.evaluate("localStorage.getItem('parlour.token')") is None


async def test_a_token_that_was_changed_asks_again(room: Page, gateway: FakeGateway) -> None:
    await room.evaluate("localStorage.setItem('parlour.token', 'old')")
    await room.reload()
    await expect(room.get_by_role("alert")).to_contain_text("The access token has changed")
    assert gateway.hellos[-1]["token"] == "old"


@pytest.mark.parametrize(
    "where", ["?gatewayUrl=ws://127.0.0.1:{port}&token=x&chat=c_9", "#token=x&url=ws://127.0.0.1:{port}"]
)
async def test_the_address_bar_has_no_say(page: Page, gateway: FakeGateway, where: str) -> None:
    visits: list[str] = []

    async def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append("a connection")
        writer.close()

    canary = await asyncio.start_server(note, "127.0.0.1", 0)
    async with canary:
        port = canary.sockets[0].getsockname()[1]
        await page.goto(f"{gateway.origin}/{where.format(port=port)}")
        await expect(page.get_by_test_id("token-input")).to_have_value("")
        assert gateway.hellos == []
        await sign_in(page)
        assert visits == []
    assert gateway.hellos[0]["token"] == TOKEN
    assert gateway.hellos[0]["chat"] == "latest"
    assert TOKEN not in page.url


@pytest.mark.parametrize(("token", "shown"), [("", "signin"), ("t0ken", "app")])
async def test_the_first_view_needs_no_module(
    page: Page, gateway: FakeGateway, token: str, shown: str
) -> None:
    await page.route("**/app.js", lambda route: route.abort())
    await page.evaluate("token => localStorage.setItem('parlour.token', token)", token)
    await page.goto(gateway.origin)
    await expect(page.locator(f"#{shown}")).to_be_visible()
    await expect(page.locator("#app" if shown == "signin" else "#signin")).to_be_hidden()
