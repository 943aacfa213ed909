"""Classify Slack's and network errors of calls that send. Messages contain only codes, never a token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from adapters.channel import Failure, FailureKind
from adapters.withheld import RequestWithheld

_CODE = re.compile(r"[a-z0-9_]{1,60}")
_KINDS: Mapping[FailureKind, frozenset[str]] = {
    "auth": frozenset(
        {"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}
        | {"not_allowed_token_type", "org_login_required"}
    ),
    "permission": frozenset(
        {"not_in_channel", "restricted_action", "restricted_action_read_only_channel", "missing_scope"}
        | {"restricted_action_thread_only_channel", "restricted_action_non_threadable_channel"}
        | {"restricted_action_thread_locked", "is_archived", "no_permission", "access_denied"}
        | {"cannot_dm_bot", "user_is_restricted", "ekm_access_denied", "team_access_not_granted"}
        | {
            "method_not_supported",
            "as_user_not_supported",
            "channel_type_not_supported",
            "messages_tab_disabled",
        }
    ),
    "not_found": frozenset(
        {"channel_not_found", "message_not_found", "thread_not_found", "user_not_found", "file_not_found"}
        # A message that can no longer be edited is treated as gone: the answer is posted again.
        | {"cant_update_message", "edit_window_closed", "message_not_owned_by_app"}
    ),
    "invalid": frozenset(
        {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "no_text"}
        | {"invalid_arguments", "invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large"}
        | {"invalid_chunks", "markdown_text_conflict", "message_not_in_streaming_state", "stopped_by_user"}
        | {"streaming_state_conflict", "streaming_mode_mismatch", "unknown_method", "feature_not_enabled"}
        | {"missing_recipient_user_id", "missing_recipient_team_id", "cannot_reply_to_message"}
    ),
    "rate_limit": frozenset({"ratelimited", "rate_limited", "accesslimited", "message_limit_exceeded"}),
    "transient": frozenset(
        {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
    ),
}
FORMAT_CODES = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
"""Slack rejects the formatting; the plain text may succeed."""
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
CALL_ERRORS = (
    SlackClientError, aiohttp.ClientError, RequestWithheld, OSError, TimeoutError, ValueError,
)  # fmt: skip
"""The exceptions of a failed SDK call."""
_RETRY_AFTER_S = 30.0
"""Seconds to wait after a rate limit that names no time."""


class CallFailed(Exception):
    """A classified failure of a call to Slack. `code` is Slack's error, if it returned one."""

    def __init__(self, failure: Failure, *, code: str = "") -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.code = code


def failed(method: str, error: Exception) -> CallFailed:
    """Classify `error`, raised by the SDK while it called `method`."""
    if isinstance(error, SlackApiError):
        return _refused(method, error)
    if isinstance(error, RequestWithheld):
        return CallFailed(Failure(kind="transient", message=str(error)))
    if isinstance(error, _NOT_SENT):
        words = f"Slack could not be reached for {method} ({type(error).__name__})"
        return CallFailed(Failure(kind="transient", message=words))
    if isinstance(error, TimeoutError | aiohttp.ClientError | OSError):
        words = f"Slack did not answer {method} ({type(error).__name__})"
        return CallFailed(Failure(kind="transient", message=words, maybe_delivered=True))
    words = f"{method} failed ({type(error).__name__})"
    return CallFailed(Failure(kind="unknown", message=words, maybe_delivered=True))


def _refused(method: str, error: SlackApiError) -> CallFailed:
    response: Any = error.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
    data = getattr(response, "data", None)
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    code = code if _CODE.fullmatch(code) else ""
    if status == 429 or code in _KINDS["rate_limit"]:
        words = f"Slack asks to wait with {method}"
        wait = _retry_after(getattr(response, "headers", None))
        return CallFailed(Failure(kind="rate_limit", message=words, retry_after_s=wait), code=code)
    if not code:
        words = f"Slack answered {method} with HTTP {status}"
        broken = status >= 500 or status == 200
        kind: FailureKind = "transient" if broken else "unknown"
        return CallFailed(Failure(kind=kind, message=words, maybe_delivered=broken))
    kind = next((kind for kind, codes in _KINDS.items() if code in codes), "unknown")
    failure = Failure(
        kind=kind,
        message=f"Slack refused {method}: {code}",
        # Slack's internal errors may occur after the call took effect.
        maybe_delivered=kind == "transient",
    )
    return CallFailed(failure, code=code)


def _retry_after(headers: Any) -> float:
    value = headers.get("Retry-After") if hasattr(headers, "get") else None
    try:
        seconds = float(value) if value is not None else _RETRY_AFTER_S
    except ValueError:
        return _RETRY_AFTER_S
    return seconds if 0 <= seconds <= 86_400 else _RETRY_AFTER_S
