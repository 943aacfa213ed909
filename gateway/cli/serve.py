"""`parlour serve`: run the gateway in the foreground until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.app.bootstrap import Extras, build
from gateway.app.lifecycle import Gateway
from gateway.app.safety import exempt_agents
from gateway.cli.missing_models import model_gaps
from gateway.cli.sign_in_link import access_token, qr_code, reachable_origin, sign_in_link
from gateway.config import Secrets, Settings, crash_at, environment, load
from gateway.config.channels import label_of
from gateway.config.posting import PostingSettings
from gateway.config.problems import one_line
from gateway.runtime.crash_labels import LABELS
from gateway.runtime.logs import configure_logging
from pipeline.redaction.redactor import Redactor

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STOPPED_AT_ONCE = 130
COLLECTED_AFTER = 10_000
"""New objects between two collections; 700 by default, which is as many as a few turns in progress have."""


def serve(config: Path | None, overrides: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT; exit code 0 after an orderly end, also with turns left for the next start.

    Raises ConfigurationError and StorageError with a readable message when it cannot start.
    """
    environ = environment()
    settings = load(config, environ, overrides)
    secrets = open_logs(settings)
    extras = Extras(crash_at=crash_at(environ, labels=LABELS))
    return asyncio.run(_run(settings, secrets, extras))


def open_logs(settings: Settings) -> Secrets:
    """Configure the logs of this process; return the secrets that they redact."""
    secrets = Secrets(settings.secret_refs().values())
    configure_logging(
        level=settings.log.level, style=settings.log.format, redactor=Redactor(secrets.known_values)
    )
    return secrets


async def _run(settings: Settings, secrets: Secrets, extras: Extras) -> int:
    gateway = build(settings, secrets, extras)
    stopping = asyncio.Event()
    _on_signal(stopping)
    await gateway.start()
    # Objects from the imports and the start live until the end: every garbage collection over them would
    # delay all chats by some 50 ms.
    gc.freeze()
    # A finished turn is freed without the collector, which would only examine the turns in progress.
    gc.set_threshold(COLLECTED_AFTER)
    _announce(gateway, settings)
    await stopping.wait()
    _say("Stopping: finishing what is being answered. Once more to stop at once.")
    if await gateway.stop():
        _say("Stopped.")
    else:
        _say("Stopped. Unfinished messages will be answered at the next start.")
    return 0


def _on_signal(stopping: asyncio.Event) -> None:
    """Stop in order at the first signal, at once at the second: all accepted messages are durable."""

    def received() -> None:
        if stopping.is_set():
            os._exit(_STOPPED_AT_ONCE)
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, received)


def _announce(gateway: Gateway, settings: Settings) -> None:
    gaps = model_gaps(settings)
    _say(f"{settings.bot.name} is {'running, but not complete' if gaps else 'ready'}.")
    if settings.cluster.is_edge:
        _announce_channels(gateway, settings)
    else:
        _say(f"  health and metrics at {gateway.url}; it runs turns, and an edge has page and accounts")
    for one in gateway.left_out:
        _say(f"  !  {one.label}  is left out: {one_line(one.problem)}")
    if exempt := exempt_agents(settings):
        _say(f"  !  the crisis gate is off for: {', '.join(exempt)} (docs/guides/safety.md)")
    for gap in gaps:
        _say(f"  !  {gap}")
    meanwhile = "" if gaps else "The models load in the background; messages are accepted meanwhile. "
    _say(f"{meanwhile}Ctrl-C stops.")


def _announce_channels(gateway: Gateway, settings: Settings) -> None:
    """Print the page's address, its token, and what is received, of a process that has accounts."""
    accounts = settings.channels.accounts()
    left_out = {(one.channel, one.account) for one in gateway.left_out}
    posting = [one for one in accounts if one.settings.active and one.key not in left_out]
    if settings.channels.web.enabled:
        _say(f"  page   {gateway.url}")
    else:
        none = "" if posting else "; no channel is enabled"
        _say(f"  health and metrics at {gateway.url}{none}")
    _say(f"  token  {_token_words(settings)}")
    if settings.channels.web.enabled:
        _announce_link(gateway.url, settings)
    for account in accounts:
        section = account.settings
        given = account.kind is not None or account.channel in settings.channels.model_fields_set
        if given and section.enabled and not section.active:
            what = "the token" if account.kind is None else f"{account.path}.{section.needed()}"
            _say(f"  {label_of(account, accounts)}  is off: {what} is not set")
    for account in posting:
        _say(f"  {label_of(account, accounts)}  {_access_words(account.settings)}")


def _token_words(settings: Settings) -> str:
    reference = settings.channels.web.token
    if reference is not None:
        return f"the one in {reference}"
    return f"{settings.web_token_path.read_text(encoding='ascii').strip()}   (the page asks for it once)"


def _announce_link(url: str, settings: Settings) -> None:
    """Print the sign-in link if the token was made by Parlour. A configured token is never printed."""
    if settings.channels.web.token is not None:
        _say("  link   `parlour link` shows a link that signs a browser in")
        return
    token, origin = access_token(settings), reachable_origin(settings)
    link = sign_in_link(origin or url, token)
    _say(f"  link   {link}   (signs a browser in)")
    if origin is not None and sys.stdout.isatty():
        _say(qr_code(link))


def _access_words(section: PostingSettings) -> str:
    match section.access:
        case "open":
            return "is connecting; open to everybody within the daily limits"
        case "list":
            return f"is connecting; for the {len(section.allow)} entries of its allow list"
        case "pairing":
            return "is connecting; a stranger is shown a code, and `parlour pair CODE` lets them in"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
