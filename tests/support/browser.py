"""Find a Chromium that starts, install one if asked to, or say why there is none.

Not a fixture (that is `browser_fixture`). Without a browser, the browser tests are skipped with the reason
that `why_no_chromium` returns.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

_SHELL = "chromium-headless-shell"
"""Chromium without windows: the page tests take half the processor time with it."""
_NAMES = (_SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PLAYWRIGHT_PATH = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p:\n"
    "    print(p.chromium.executable_path)\n"
)
_DOWNLOAD_S = 180
_APT_S = 300


def find_chromium() -> str | None:
    """Path of a Chromium that starts, or None. Looked for on PATH, then among Playwright's own
    downloads; nothing is installed. The answer is kept for the life of the process."""
    return _found()


def why_no_chromium() -> str:
    """The advice for when `find_chromium` returns None."""
    return "no Chromium that starts: `python -m tests.support.browser` tries to get one and says what failed"


def main() -> int:
    """Find a Chromium or install one; `make test` calls this before the tests. Always exit code 0: tests
    without a browser are reported as skipped."""
    found = _shell_by_apt() or find_chromium() or _fetched_by_playwright() or _installed_by_apt()
    words = found or "none could be had; the tests that need one will be listed as not run"
    sys.stdout.write(f"browser: {words}\n")
    return 0


@functools.cache
def _found() -> str | None:
    return _on_path() or _playwrights_own()


def _fetched_by_playwright() -> str | None:
    sys.stdout.write("browser: none here; asking Playwright for one\n")
    sys.stdout.flush()
    if not _works([sys.executable, "-m", "playwright", "install", "chromium"], _DOWNLOAD_S):
        return None
    return _playwrights_own()


def _shell_by_apt() -> str | None:
    """The headless shell where Debian's packages have it; None elsewhere, which is no problem."""
    if shutil.which(_SHELL) is None and _can_install():
        install = ["apt-get", "install", "-y", "--no-install-recommends", _SHELL]
        if not _works(install, _APT_S):
            _works(["apt-get", "update"], _APT_S)
            _works(install, _APT_S)
    return _on_path((_SHELL,))


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _installed_by_apt() -> str | None:
    if not _can_install():
        return None
    sys.stdout.write("browser: Playwright has none for us; installing the system's package\n")
    sys.stdout.flush()
    _works(["apt-get", "update"], _APT_S)
    _works(["apt-get", "install", "-y", "chromium"], _APT_S)
    return _on_path()


def _on_path(names: Sequence[str] = _NAMES) -> str | None:
    for name in names:
        path = shutil.which(name)
        # Some distributions install a stub that only prints where to get the browser.
        if path and _works([path, "--version"], 30):
            return path
    return None


def _playwrights_own() -> str | None:
    # In a separate process, because Playwright's blocking interface refuses to run inside an event loop.
    path = _output([sys.executable, "-c", _PLAYWRIGHT_PATH], 60)
    return path if path and _works([path, "--version"], 30) else None


def _works(command: list[str], limit_s: float) -> bool:
    return _output(command, limit_s) is not None


def _output(command: list[str], limit_s: float) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
