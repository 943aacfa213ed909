"""Whether the library for searches without a key is there. Not the search: `search_keyless`.

Separate from it because the configuration is checked with this, and needs no HTTP client.
"""

from __future__ import annotations

from importlib.util import find_spec


def is_installed() -> bool:
    """Whether the library ddgs is there. Does not import it."""
    return find_spec("ddgs") is not None
