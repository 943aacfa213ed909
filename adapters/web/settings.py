"""The web channel's settings. Values only: the gateway's configuration provides them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from adapters.web.text_tables import TextTable
from pipeline.domain.frozen import dataclass

CHANNEL = "web"
ACCOUNT = "local"
PACKAGED_PAGE = Path(__file__).parent / "static"
_SMALLEST_TEXT_FRAME = 64 * 1024
_DOCUMENT_FRAME = 1_100_000
_JSON_BYTES_PER_CHAR = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """The web channel's settings. The callables are called for every connection."""

    bot_name: str
    token_check: Callable[[str], bool]
    """Whether a presented access token is right, in constant time (`security.token_matches`)."""
    allowed_hosts: Callable[[], Collection[str]]
    """The exact `Host` headers of this server, for example `127.0.0.1:8321`."""
    allowed_origins: Callable[[], Collection[str]]
    """The exact `Origin` headers that may open the socket, for example `http://127.0.0.1:8321`."""
    on_wrong_token: Callable[[], None] = lambda: None
    """Called for each wrong token, for the metrics."""
    wrong_elsewhere: Callable[[str], int] = lambda _network: 0
    """Called with each wrong token's network; how many other processes had from it within a minute."""
    media_dir: Path
    """Where voice notes wait for their turn; created with mode 0700."""
    text_chars: int = 8000
    voice_enabled: bool = True
    voice_bytes: int = 20 * 1024 * 1024
    voice_seconds: int = 300
    file_bytes: int = 0
    """The largest upload; 0 where no files are taken."""
    static_dir: Path = PACKAGED_PAGE
    """The page's files."""
    added_tables: tuple[TextTable, ...] = ()
    """The languages of the page beside the package's own."""
    max_sockets: int = 200
    max_sockets_per_chat: int = 20
    max_sockets_per_person: int = 40
    """For an invited person; the owner has no such limit."""
    max_openings: int = 128
    """The most sockets without a `hello`; for one more, the longest silent one is closed."""
    max_openings_per_address: int = 64
    hello_timeout_s: float = 5.0
    hello_bytes: int = 16 * 1024
    """The most bytes that a client may send until its `hello` is accepted, that one included."""
    heartbeat_s: float = 30.0
    history_entries: int = 500
    """Entries of the history that a page opens with."""
    earlier_entries: int = 200
    """Earlier entries per request."""
    listed_chats: int = 50

    editing: bool = False
    """Whether anyone may edit workflows, whose documents are longer than messages."""

    @property
    def text_frame_bytes(self) -> int:
        """Largest text frame. A character takes up to 12 bytes where a client escapes all of them."""
        smallest = _DOCUMENT_FRAME if self.editing else _SMALLEST_TEXT_FRAME
        return max(smallest, self.text_chars * _JSON_BYTES_PER_CHAR + 4096)

    @property
    def frame_bytes(self) -> int:
        """Largest frame of any kind; the transport closes the socket with 1009 beyond it."""
        return max(self.voice_bytes if self.voice_enabled else 0, self.text_frame_bytes) + 1024
