"""Files of platforms for a process that does not have their account: the one that has it fetches them, and
hands them over in the store's blobs.

A process that runs turns has no token of a platform. It asks the holder of the account (`MediaWanted`), which
stores the bytes under a name that was made for this request and says so (`MediaReady`). The bytes are deleted
as soon as they are read, and expire if no one reads them. Both signals are hints: the store is looked at and
the request repeated until there is an answer or the time is over.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol, get_args

from gateway.cluster.bus import EVERY_OWNER, Bus, holder_of
from gateway.cluster.signals import Control, MediaReady, MediaWanted
from gateway.storage.blobs import BlobBook, BlobGone, BlobTooLarge, NewBlob
from pipeline.domain.attachments import file_size
from pipeline.domain.background import Spawn
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock, within
from pipeline.domain.errors import MediaUnavailable, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaKind, MediaRef

_log = logging.getLogger(__name__)

ASK_AGAIN_S: Final = 2.0
"""Seconds between two requests for the same file."""
LONGEST_S: Final = 180.0
"""For so long a turn waits for the process that has the account, which may be starting again."""
KEPT_S: Final = 300.0
"""How long a file waits to be read, in seconds; longer than anybody waits for it."""
_MOST_BYTES: Final = 1_000_000_000
"""Of all blobs together. Those of the page whose message has not come make room."""
_AT_ONCE: Final = 4
"""Files that one process fetches for others at the same time; their bytes are in memory."""
_MOST_WAITING: Final = 256
"""Requests that wait for that; what exceeds it is asked for again."""
_KINDS: Final[tuple[MediaKind, ...]] = get_args(MediaKind)
_AWAY = "The channel of this file is not connected. Please send it again later."
_FAILED = "The file could not be fetched. Please send it again later."
_UNREADABLE = "It cannot be read now; please send it again later."


class AccountFiles(Protocol):
    """What fetches the files of one account."""

    @property
    def name(self) -> str: ...

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """See `adapters.channel.ChannelAdapter.download`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDownloads:
    """The files of one thread, of a process that asks for them: see `Downloads`."""

    requests: MediaRequests
    thread: ThreadKey

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """See `adapters.channel.ChannelAdapter.download`."""
        return await self.requests.fetch(self.thread, ref, max_bytes=max_bytes)


@dataclass(slots=True, frozen=True)
class _Waiter:
    answered: asyncio.Event
    problems: list[str]


class MediaRequests:
    """Asks for files in a process that runs turns. `note` gets the controls about them."""

    def __init__(self, bus: Bus, blobs: BlobBook, clock: Clock) -> None:
        self._bus = bus
        self._blobs = blobs
        self._clock = clock
        self._waiters: dict[str, _Waiter] = {}

    def of(self, thread: ThreadKey) -> AskedDownloads:
        """What fetches the files of a thread."""
        return AskedDownloads(requests=self, thread=thread)

    def note(self, control: MediaWanted | MediaReady) -> None:
        """A process has answered a request. Requests are for the process that has the account."""
        waiter = self._waiters.get(control.blob)
        if waiter is None or isinstance(control, MediaWanted):
            return
        if control.problem:
            waiter.problems.append(control.problem)
        waiter.answered.set()

    async def fetch(self, thread: ThreadKey, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes of `ref`. Raises MediaUnavailable, also if no process that has the account answers."""
        name = f"m_{secrets.token_hex(16)}"
        wanted = MediaWanted(
            thread=thread.encode(),
            blob=name,
            handle=ref.handle,
            mime=ref.mime,
            file_kind=ref.kind,
            max_bytes=max_bytes,
        )
        waiter = self._waiters[name] = _Waiter(asyncio.Event(), [])
        latest = self._clock.monotonic() + LONGEST_S
        try:
            while (content := await self._read(name, max_bytes)) is None:
                if waiter.problems:
                    raise MediaUnavailable(waiter.problems[0])
                if self._clock.monotonic() >= latest:
                    raise MediaUnavailable(_AWAY, detail="no process that has the account answered")
                self._bus.control(holder_of(thread.account_key), wanted)
                with suppress(TimeoutError):
                    await within(self._clock, ASK_AGAIN_S, waiter.answered.wait())
                waiter.answered.clear()
        finally:
            del self._waiters[name]
        return content

    async def _read(self, name: str, max_bytes: int) -> bytes | None:
        """The bytes, which are deleted; None while they are not there."""
        try:
            content = await self._blobs.get(name, max_bytes=max_bytes)
            await self._blobs.delete((name,))
        except BlobGone:
            return None
        except BlobTooLarge:
            raise MediaUnavailable(f"It is larger than {file_size(max_bytes)}.") from None
        except StorageError as error:
            _log.warning("a file could not be read from the store", extra={"reason": str(error)})
            raise MediaUnavailable(_UNREADABLE) from error
        return content


class MediaHandover:
    """Fetches files of one account for other processes, in the process that has it. `largest` is the most
    bytes of one file."""

    def __init__(
        self, channel: AccountFiles, bus: Bus, blobs: BlobBook, clock: Clock, spawn: Spawn, *, largest: int
    ) -> None:
        self._channel = channel
        self._bus = bus
        self._blobs = blobs
        self._clock = clock
        self._spawn = spawn
        self._largest = largest
        self._fetching: set[str] = set()
        self._fetched = BoundedDict[str, float](_MOST_WAITING)
        """When each file was stored, by the name of its blob."""
        self._places = asyncio.Semaphore(_AT_ONCE)

    def wanted(self, control: Control) -> None:
        """Fetch a file, unless that was begun. Ignores other controls."""
        if not isinstance(control, MediaWanted) or len(self._fetching) >= _MOST_WAITING:
            return
        stored_at = self._fetched.get(control.blob)
        # A request that was on its way while the file was stored would store it again.
        if stored_at is not None and self._clock.monotonic() < stored_at + 2 * ASK_AGAIN_S:
            return
        if control.blob not in self._fetching:
            self._fetching.add(control.blob)
            self._spawn(self._answer(control), name="file for another process")

    async def _answer(self, wanted: MediaWanted) -> None:
        problem = ""
        try:
            async with self._places:
                await self._store(wanted)
        except StorageError as error:
            # It is asked for again as long as somebody waits.
            _log.warning("a file could not be handed over", extra={"reason": str(error)})
            return
        except MediaUnavailable as error:
            _log.warning("a file could not be fetched", extra={"reason": str(error), "detail": error.detail})
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - what waits must get an answer
            _log.error("a file could not be fetched", exc_info=error)
            problem = _FAILED
        finally:
            self._fetching.discard(wanted.blob)
        self._bus.control(EVERY_OWNER, MediaReady(thread=wanted.thread, blob=wanted.blob, problem=problem))

    async def _store(self, wanted: MediaWanted) -> None:
        kind: MediaKind = next((kind for kind in _KINDS if kind == wanted.file_kind), "file")
        ref = MediaRef(channel=self._channel.name, handle=wanted.handle, mime=wanted.mime, kind=kind)
        most = min(wanted.max_bytes, self._largest)
        content = await self._channel.download(ref, max_bytes=most)
        blob = NewBlob(name=wanted.blob, thread=wanted.thread, ttl_s=KEPT_S)
        await self._blobs.put(blob, _whole(content), max_bytes=most, most_bytes=_MOST_BYTES)
        self._fetched[wanted.blob] = self._clock.monotonic()


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content
