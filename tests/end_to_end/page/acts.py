"""What a person does on the page, and what there is to see, in the words of the tests."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from tests.end_to_end.page.fake_gateway import TOKEN, FakeGateway


async def sign_in(page: Page, token: str = TOKEN) -> None:
    """Enters the token and waits until the conversation is there."""
    await page.get_by_test_id("token-input").fill(token)
    await page.get_by_test_id("sign-in").click()
    await ready(page)


async def ready(page: Page) -> None:
    """Waits until the page says that it is connected."""
    await expect(page.get_by_test_id("status")).to_have_attribute("data-state", "ready")


async def send(page: Page, text: str) -> None:
    """Writes a message and presses Enter."""
    await page.get_by_test_id("composer").fill(text)
    await page.get_by_test_id("composer").press("Enter")


async def ask(page: Page, gateway: FakeGateway, text: str) -> str:
    """Sends a message; gives the id under which the gateway accepted it."""
    before = len(gateway.of("message"))
    await send(page, text)
    frame = await gateway.received("message", before + 1)
    await expect(entries(page, "user").last).to_have_attribute("data-state", "queued")
    return gateway.id_of(frame)


async def sign_out(page: Page) -> None:
    """Signs this browser out in the settings."""
    await page.get_by_test_id("settings").click()
    await page.get_by_test_id("sign-out").click()


def entries(page: Page, role: str) -> Locator:
    """The conversation's rows of one role, oldest first."""
    return page.locator(f'[data-testid="entry"][data-role="{role}"]')


async def copied(page: Page, button: Locator) -> str:
    """Presses a button that copies; what is on the clipboard then."""
    # It says so for a moment only, which a busy machine may sleep through. Looked at is the whole page: an
    # answer that is drawn again has another button.
    await expect(page.get_by_text("Copied")).to_have_count(0)
    await page.evaluate(
        """() => {
          window.copySaid = '';
          window.copyWatch?.disconnect();
          window.copyWatch = new MutationObserver((changes) => {
            for (const change of changes) window.copySaid += change.target.textContent;
          });
          window.copyWatch.observe(document.body, { childList: true, characterData: true, subtree: true });
        }"""
    )
    await button.click()
    await page.wait_for_function("() => window.copySaid.includes('Copied')")
    words: str = await page.evaluate("navigator.clipboard.readText()")
    return words


async def focus_by_tab(page: Page, target: Locator) -> None:
    """Presses Tab until `target` has the focus."""
    for _ in range(40):
        if await target.evaluate("node => node === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {target}")
