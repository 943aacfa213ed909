"""axe-core's findings on a page: what keeps people with a disability from using it."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Page

_AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_SERIOUS = """async () => {
  // A text that is still fading in is not yet as pale or as dark as a person reads it.
  const ends = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
  await Promise.allSettled(ends.map((one) => one.finished));
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`);
}"""


async def serious_violations(room: Page) -> list[str]:
    """The rules that the page violates seriously once its animations ended, each with its elements."""
    if not await room.evaluate("'axe' in window"):
        # `evaluate` runs outside the page's content policy, which forbids an added script.
        await room.evaluate(_AXE)
    found: list[str] = await room.evaluate(_SERIOUS)
    return found
