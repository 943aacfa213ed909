"""The common parts of the benches' pictures: frame, colours and text, as SVG written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

WIDTH = 860

# The picture brings its own background, so it can be read on any page; it follows the reader's preference.
_STYLE = """
  .back {{ fill: #ffffff; }} .text {{ fill: #1f2328; }} .faint {{ fill: #59636e; }}
  .line {{ stroke: #d1d9e0; }} .ours {{ fill: #1a7f64; }} {light}
  @media (prefers-color-scheme: dark) {{
    .back {{ fill: #0d1117; }} .text {{ fill: #f0f6fc; }} .faint {{ fill: #9198a1; }}
    .line {{ stroke: #3d444d; }} .ours {{ fill: #3fb68b; }} {dark}
  }}
  text {{ font: 13px system-ui, sans-serif; }} .title {{ font-size: 16px; font-weight: 600; }}
"""


def document(title: str, height: int, body: Sequence[str], *, light: str, dark: str) -> str:
    """The whole document; `light` and `dark` are the rules of the picture's second colour."""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(title)}>'
    )
    return "\n".join(
        [
            opening,
            f"<style>{_STYLE.format(light=light, dark=dark)}</style>",
            f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>',
            text(16, 28, title, "text title"),
            *body,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, css: str, anchor: str = "start") -> str:
    """Words at a place; `anchor` says which end of them is there."""
    return f'<text class="{css}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
