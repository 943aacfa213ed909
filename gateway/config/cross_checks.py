"""Check rules across settings: the type of a rule, and the rules of the server and the model.

Not here: the channels' rules (`channel_rules`) and checks of single values (`settings`, `value_checks`).
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.config.settings import Settings
from gateway.config.value_checks import is_loopback
from pipeline.domain.frozen import dataclass
from pipeline.tools.search_library import is_installed


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossCheck:
    """A rule, reported at the setting `path`. It is checked only if all of `reads` are valid."""

    path: str
    reads: tuple[str, ...]
    broken: Callable[[Settings], bool]
    what: str
    fix: str
    caused_by: str = ""
    """The setting that was written, if `path` is missing; empty means `path` itself."""


def _transcribes_elsewhere(settings: Settings) -> bool:
    transcriber = settings.voice.transcriber
    return transcriber != "whisper" and not transcriber.startswith("scripted:")


RULES = (
    CrossCheck(
        path="server.host",
        reads=("server.host", "server.public_origins", "channels.web.enabled", "api.enabled"),
        broken=lambda settings: (
            (settings.channels.web.enabled or settings.api.enabled)
            and not is_loopback(settings.server.host)
            and not settings.server.public_origins
        ),
        what="other machines could connect, but no page outside this machine is allowed",
        fix='set server.public_origins to the origins people use, like ["https://bot.example.org"], or '
        'server.host to "127.0.0.1"',
    ),
    CrossCheck(
        path="llm.api_key",
        reads=("llm.api_key", "llm.model"),
        broken=lambda settings: settings.llm.model == "local" and settings.llm.api_key is not None,
        what='has no effect, as llm.model is "local"',
        fix="remove it or name another model",
    ),
    CrossCheck(
        path="llm.api_base",
        reads=("llm.api_base", "llm.model"),
        broken=lambda settings: settings.llm.model == "local" and settings.llm.api_base is not None,
        what='has no effect, as llm.model is "local"',
        fix="remove it or name another model",
    ),
    CrossCheck(
        path="llm.vision",
        reads=("llm.vision", "llm.model"),
        broken=lambda settings: settings.llm.model == "local" and settings.llm.vision is True,
        what="is true, but the embedded model cannot see pictures",
        fix="remove it or name another model",
    ),
    CrossCheck(
        path="voice.api_key",
        reads=("voice.api_key", "voice.transcriber"),
        broken=lambda settings: not _transcribes_elsewhere(settings) and settings.voice.api_key is not None,
        what="has no effect, as voice.transcriber names no endpoint",
        fix="remove it or name an endpoint",
    ),
    CrossCheck(
        path="voice.api_base",
        reads=("voice.api_base", "voice.transcriber"),
        broken=lambda settings: not _transcribes_elsewhere(settings) and settings.voice.api_base is not None,
        what="has no effect, as voice.transcriber names no endpoint",
        fix="remove it or name an endpoint",
    ),
    CrossCheck(
        path="tools.search.backend",
        reads=("tools.search.backend",),
        broken=lambda settings: settings.tools.search.backend == "ddgs" and not is_installed(),
        what="is ddgs, which is not installed",
        fix="run: pip install 'parlour[search]'",
    ),
    CrossCheck(
        path="tools.search.url",
        reads=("tools.search.backend", "tools.search.url"),
        broken=lambda settings: settings.tools.search.backend == "searxng" and not settings.tools.search.url,
        what='is missing, as tools.search.backend is "searxng"',
        fix="set it to the server's address",
        caused_by="tools.search.backend",
    ),
    CrossCheck(
        path="tools.search.url",
        reads=("tools.search.backend", "tools.search.url"),
        broken=lambda settings: bool(
            settings.tools.search.url and settings.tools.search.backend not in ("searxng", "brave")
        ),
        what="has no effect, as tools.search.backend names no server",
        fix='remove it or set tools.search.backend to "searxng"',
    ),
    CrossCheck(
        path="tools.search.api_key",
        reads=("tools.search.backend", "tools.search.api_key"),
        broken=lambda settings: (
            settings.tools.search.backend == "brave" and settings.tools.search.api_key is None
        ),
        what='is missing, as tools.search.backend is "brave"',
        fix="set it to a reference to the key, such as env:BRAVE_API_KEY",
        caused_by="tools.search.backend",
    ),
    CrossCheck(
        path="tools.search.api_key",
        reads=("tools.search.backend", "tools.search.api_key"),
        broken=lambda settings: (
            settings.tools.search.backend != "brave" and settings.tools.search.api_key is not None
        ),
        what="has no effect, as tools.search.backend is not brave",
        fix='remove it or set tools.search.backend to "brave"',
    ),
    CrossCheck(
        path="voice.live.silence_s",
        reads=("voice.live.commit_s", "voice.live.pause_s", "voice.live.silence_s"),
        broken=lambda settings: (
            not (settings.voice.live.commit_s <= settings.voice.live.pause_s <= settings.voice.live.silence_s)
        ),
        what="is out of order: it must be at least voice.live.pause_s, and that at least voice.live.commit_s",
        fix="make silence_s the longest and commit_s the shortest of the three",
    ),
    CrossCheck(
        path="bus.url",
        reads=("bus.kind", "bus.url"),
        broken=lambda settings: settings.bus.kind != "process" and settings.bus.url is None,
        what="is missing, but bus.kind names a server",
        fix='set it to a reference, like "env:REDIS_URL"',
        caused_by="bus.kind",
    ),
    CrossCheck(
        path="bus.url",
        reads=("bus.kind", "bus.url"),
        broken=lambda settings: settings.bus.kind == "process" and settings.bus.url is not None,
        what='has no effect, as bus.kind is "process"',
        fix='remove it, or set bus.kind to "redis" or "postgres"',
    ),
)
