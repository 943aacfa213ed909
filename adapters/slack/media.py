"""Download files. The address is requested from Slack for the file's id, never taken from a message.

Only the platform's hosts get the token, no redirect is followed, and the size is checked before and
while reading.
"""

from __future__ import annotations

import aiohttp

from adapters.downloads import fetched, not_fetched, refused
from adapters.json_fields import mapping
from adapters.slack.calls import Calls
from adapters.slack.failures import CALL_ERRORS, CallFailed, failed
from adapters.slack.fields import count, ident
from adapters.slack.settings import CHANNEL, SlackOptions
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import MediaRef

_DOWNLOAD_S = 120.0
_CHUNK = 65_536
_GONE = 410
_REFUSED = "Slack does not give the file out."
_LOGIN_PAGE = (
    "Slack answered with its login page: the app lacks the scope files:read. Add it on the page OAuth & "
    "Permissions and install the app again."
)


async def download(
    ref: MediaRef, *, max_bytes: int, calls: Calls, settings: SlackOptions, clock: Clock
) -> bytes:
    """The bytes of a file. Raises MediaUnavailable, with text for the user, when gone, refused or too
    large."""
    name = ident(ref.handle)
    if ref.channel != CHANNEL or not name:
        raise MediaUnavailable("This is not a file of Slack's.")
    return await fetched(lambda: _once(name, max_bytes, calls, settings, clock), clock)


async def _once(name: str, max_bytes: int, calls: Calls, settings: SlackOptions, clock: Clock) -> bytes:
    url = await _address(name, calls, max_bytes)
    if not calls.ours(url):
        raise MediaUnavailable("Slack keeps this file on a host that is not its own.")
    headers = {"Authorization": f"Bearer {settings.bot_token().strip()}"}
    try:
        async with clock.timeout(_DOWNLOAD_S):
            if calls.session is not None:
                return await _fetch(calls.session, url, headers, max_bytes)
            async with aiohttp.ClientSession() as session:
                return await _fetch(session, url, headers, max_bytes)
    except CALL_ERRORS as error:
        raise not_fetched("Slack", failed("the download", error).failure) from None


async def _address(name: str, calls: Calls, max_bytes: int) -> str:
    try:
        answer = await calls.run("files.info", lambda client: client.files_info(file=name))
    except CallFailed as error:
        if error.code == "missing_scope":
            raise MediaUnavailable(_REFUSED, detail=_LOGIN_PAGE) from None
        if error.code in ("file_not_found", "file_deleted"):
            raise refused("Slack", _GONE) from None
        raise not_fetched("Slack", error.failure) from None
    file = mapping(answer.get("file"))
    _check_size(count(file.get("size")), max_bytes)
    url = file.get("url_private_download") or file.get("url_private")
    return url if isinstance(url, str) else ""


async def _fetch(session: aiohttp.ClientSession, url: str, headers: dict[str, str], max_bytes: int) -> bytes:
    async with session.get(url, headers=headers, allow_redirects=False) as response:
        if response.status != 200:
            raise refused("Slack", response.status)
        if response.content_type == "text/html":
            raise MediaUnavailable(_REFUSED, detail=_LOGIN_PAGE)
        _check_size(response.content_length, max_bytes)
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            _check_size(len(content), max_bytes)
        return bytes(content)


def _check_size(size: int | None, max_bytes: int) -> None:
    if size is not None and size > max_bytes:
        raise MediaUnavailable(f"It is larger than {file_size(max_bytes)}. Please send a smaller one.")
