"""axe-core's findings on a page: what keeps people with a disability from using it."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Page

_AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules whose findings another theme can change."""
_SERIOUS = """async (rules) => {
  // A text that is still fading in is not yet as pale or as dark as a person reads it.
  const ends = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
  await Promise.allSettled(ends.map((one) => one.finished));
  // Without `preload`, which fetches the style sheets and sounds once more for two rules: one is switched off
  // by default, the other is never serious.
  const found = await axe.run(document, {
    resultTypes: ['violations'], preload: false, ...(rules ? { runOnly: rules } : {}),
  });
  return found.violations
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(' ')).join(', ')}`);
}"""


async def serious_violations(room: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """The rules that the page violates seriously once its animations ended, each with its elements; of all
    rules unless some are named."""
    # `evaluate` runs outside the page's content policy, which forbids an added script. A third of the time of
    # a look is spent on reading it, once for each document.
    if not await room.evaluate("'axe' in window"):
        await room.evaluate(_AXE)
    found: list[str] = await room.evaluate(_SERIOUS, list(rules) or None)
    return found
