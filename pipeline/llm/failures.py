"""Translate provider errors: HTTP status in, one of three model errors out.

It reads attributes (`status_code`, headers), not classes, so that no library has to be imported to tell a
refusal from a temporary failure. It does not retry; `retry_delay` says whether and when that makes sense.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from pipeline.domain.errors import ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from pipeline.domain.frozen import dataclass
from pipeline.llm.client import LlmFinished

_MAX_DETAIL_CHARS = 4_000
_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 8.0
_TRANSIENT_4XX = frozenset({408, 425, 429})
_NO_KEY = "missing credentials"
_NO_CREDIT = ("insufficient_quota", "exceeded your current quota", "insufficient credits")
_TOO_LONG = ("context size", "context length", "context window", "maximum context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The called endpoint, for readable error texts and for hiding the call's secret."""

    model: str
    api_base: str | None = None
    secret: str | None = None

    def __repr__(self) -> str:
        return f"Target(model={self.model!r}, api_base={self.api_base!r})"


def translate(error: Exception, target: Target) -> ModelError:
    """The error to raise for `error`, which a provider call raised. Its text is readable; the provider's own
    text is its `detail`, without the call's secret."""
    if isinstance(error, ModelError):
        return error
    translated = _in_our_words(error, target)
    translated.detail = _detail(error, target)
    return translated


def _in_our_words(error: Exception, target: Target) -> ModelError:
    status = status_of(error)
    lowered = str(error).lower()
    if _NO_KEY in lowered or status in (401, 403):
        return ModelRejected(
            f"The provider of model {target.model!r} did not accept the key: check `llm.api_key`"
        )
    if status in (400, 413) and any(words in lowered for words in _TOO_LONG):
        return ModelRejected(
            f"The conversation does not fit the context of model {target.model!r}: "
            f"start a new one with /new or use a model with a larger context"
        )
    if status == 404:
        where = f" at {target.api_base}" if target.api_base else ""
        return ModelRejected(
            f"There is no model {target.model!r}{where}: check `llm.model` and `llm.api_base`"
        )
    if status == 402 or any(words in lowered for words in _NO_CREDIT):
        return ModelRejected(
            f"The account at the provider of model {target.model!r} has no credit left: top it up"
        )
    if status is not None and 400 <= status < 500 and status not in _TRANSIENT_4XX:
        return ModelRejected(
            f"The provider refused the request to model {target.model!r} ({status}): "
            f"check `llm.model` and `llm.api_base`"
        )
    if status == 429:
        return ModelUnavailable(
            f"The provider of model {target.model!r} limits the rate of requests; try again later",
            retry_after_s=retry_after_of(error),
        )
    return ModelUnavailable(
        f"Model {target.model!r} cannot be reached now; try again later",
        retry_after_s=retry_after_of(error),
    )


def timed_out(timeout_s: float, target: Target) -> ModelTimeout:
    """The error for a call that returned nothing for `timeout_s` seconds."""
    return ModelTimeout(f"Model {target.model!r} said nothing within {timeout_s:g} seconds")


class EmptyAnswer(ModelUnavailable):
    """An answer without text and calls. The same request would mostly get the same answer again.

    `finished` has the call's attempts, tokens and cost.
    """

    def __init__(self, message: str, *, finished: LlmFinished) -> None:
        super().__init__(message)
        self.finished = finished


def empty_answer(target: Target, finished: LlmFinished) -> ModelError:
    """The error for a stream that ended without text and calls."""
    if finished.finish_reason == "content_filter":
        return ModelRejected(
            f"The provider's content filter withheld the answer of model {target.model!r}: "
            "put the question in other words"
        )
    return EmptyAnswer(f"Model {target.model!r} gave an empty answer; try again", finished=finished)


def retry_delay(error: ModelError, attempt: int) -> float | None:
    """Seconds to wait before try number `attempt` + 2 (`attempt` counts from 0); None: do not retry.

    The provider's Retry-After takes precedence; otherwise exponential backoff with jitter, so that turns that
    failed together do not retry together.
    """
    if not isinstance(error, ModelUnavailable) or isinstance(error, EmptyAnswer):
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s
    ceiling = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2.0**attempt)
    return ceiling * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, no secret depends on it


def status_of(error: Exception) -> int | None:
    """The HTTP status that `error` carries, if it does."""
    status = getattr(error, "status_code", None)
    if isinstance(status, str) and status.isdigit():
        return int(status)
    return status if isinstance(status, int) else None


def retry_after_of(error: Exception) -> float | None:
    """Seconds of a Retry-After header; None when it is absent or unreadable.

    Its other form, a time, is taken from the answer's own Date: two clocks need not agree.
    """
    response = getattr(error, "response", None)
    sources = (
        getattr(error, "litellm_response_headers", None),
        getattr(response, "headers", None),
        getattr(error, "headers", None),
    )
    for headers in sources:
        if not isinstance(headers, Mapping):
            continue
        said = str(headers.get("retry-after", headers.get("Retry-After")))
        try:
            seconds = float(said) if said[:1].isdigit() else _until(said, headers)
        except (ValueError, TypeError):
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _until(moment: str, headers: Mapping[str, Any]) -> float:
    """Seconds from the answer's Date to `moment`. Raises ValueError or TypeError."""
    date = str(headers.get("date", headers.get("Date")))
    return max(0.0, (parsedate_to_datetime(moment) - parsedate_to_datetime(date)).total_seconds())


def _detail(error: Exception, target: Target) -> str:
    """The provider's text on one line, cut far beyond the length that is ever shown. Callers that show it let
    the redactor cut it, so that no other secret is cut in half."""
    text = " ".join(str(error).split())
    if target.secret:
        text = text.replace(target.secret, "***")
    return text[:_MAX_DETAIL_CHARS]
