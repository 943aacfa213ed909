"""Finds a Chromium that starts, or says why there is none.

Not a fixture (that is `browser_fixture`), and not a promise: where no browser can be had, the
browser tests are skipped with the reason that `why_no_chromium` gives.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PLAYWRIGHT_PATH = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p:\n"
    "    print(p.chromium.executable_path)\n"
)
_DOWNLOAD_S = 180
_APT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    path: str | None
    reason: str


def find_chromium() -> str | None:
    """Path of a Chromium that starts, or None.

    Looked for on PATH, then among Playwright's own downloads, then fetched with Playwright, then
    with apt where that is allowed. The answer is kept for the life of the process.
    """
    return _search().path


def why_no_chromium() -> str:
    """Why `find_chromium` gave None, in words; empty when it found one."""
    return _search().reason


@functools.cache
def _search() -> _Search:
    found = _on_path() or _playwrights_own()
    if found:
        return _Search(path=found, reason="")
    tried = ["none on PATH or among Playwright's downloads"]
    if _works([sys.executable, "-m", "playwright", "install", "chromium"], _DOWNLOAD_S):
        found = _playwrights_own()
    tried.append("`playwright install chromium` did not give one that starts")
    if found is None and _may_use_apt():
        _works(["apt-get", "update"], _APT_S)
        _works(["apt-get", "install", "-y", "chromium"], _APT_S)
        found = _on_path()
        tried.append("`apt-get install chromium` did not either")
    if found:
        return _Search(path=found, reason="")
    return _Search(path=None, reason="no Chromium could be had: " + "; ".join(tried))


def _on_path() -> str | None:
    for name in _NAMES:
        path = shutil.which(name)
        # Some distributions install a stub that only tells where the browser could be got.
        if path and _works([path, "--version"], 30):
            return path
    return None


def _playwrights_own() -> str | None:
    # In a process of its own: Playwright's blocking interface refuses to run inside an event loop.
    path = _output([sys.executable, "-c", _PLAYWRIGHT_PATH], 60)
    return path if path and _works([path, "--version"], 30) else None


def _may_use_apt() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _works(command: list[str], limit_s: float) -> bool:
    return _output(command, limit_s) is not None


def _output(command: list[str], limit_s: float) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
