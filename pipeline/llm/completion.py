"""Read the events of an OpenAI-compatible endpoint: text, calls, usage, the end, an error.

The input is the JSON data of each event; this module has no connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.llm.client import LlmFinished
from pipeline.llm.prices import Price
from pipeline.llm.tool_call_assembly import SURROGATE, CallAssembly, fragments_of, whole

_DONE = b"[DONE]"


class Unreadable(ValueError):
    """The data is not an event of a chat completion."""

    def __init__(self, text: str = "what came is no chat completion: check `llm.api_base`") -> None:
        super().__init__(text)


class ReportedError(Exception):
    """The provider reports a failure, by HTTP status or in its stream, with its own `code` and `param`."""

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        code: str = "",
        param: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.status_code = status
        self.code = code
        self.param = param
        self.headers = headers or {}


class Completion:
    """One answer, read event by event. A `price` sets its cost, else the endpoint's own figure."""

    def __init__(self, price: Price | None = None) -> None:
        self.calls = CallAssembly()
        self._price = price
        self.done = False
        """Whether the endpoint has announced the end of the stream."""
        self.finish_reason: str | None = None
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._cost = 0.0
        self._half = ""
        """The first half of a character that the endpoint cut in two."""

    @property
    def ended(self) -> bool:
        """Whether the answer is whole. The end of the connection alone does not prove that."""
        return self.done or self.finish_reason is not None

    def read(self, data: bytes) -> str:
        """The text in the event `data`. Raises Unreadable or ReportedError."""
        if data == _DONE or data.strip() == _DONE:
            self.done = True
            return ""
        event = parsed(data)
        choices = event.get("choices")
        if choices:
            text = self._choice(choices)
        elif "error" in event or event.get("object") == "error":
            raise reported(event)
        else:
            text = ""
        usage = event.get("usage")
        if usage:
            self._use(usage)
        return text

    def finished(self, *, called: bool) -> LlmFinished:
        """The final item; `called` says that the answer has calls, which some endpoints end with `stop`."""
        reason = self.finish_reason or "stop"
        if called and reason in ("stop", "function_call"):
            reason = "tool_calls"
        return LlmFinished(
            finish_reason=reason,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            cost=self._cost,
        )

    def _choice(self, choices: Any) -> str:
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, dict):
            raise Unreadable
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        calls = delta.get("tool_calls")
        if calls:
            for fragment in fragments_of(calls):
                self.calls.add(**fragment)
        content = delta.get("content") or delta.get("refusal")
        if not content:
            return ""
        text = content if isinstance(content, str) else _joined(content)
        return text if text.isascii() else self._whole(text)

    def _whole(self, text: str) -> str:
        """`text` without halves of characters: some endpoints cut an emoji between two events."""
        if not self._half and SURROGATE.search(text) is None:
            return text
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole(text)

    def _use(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        self._prompt_tokens = int(_number(usage.get("prompt_tokens")))
        self._completion_tokens = int(_number(usage.get("completion_tokens")))
        if self._price is None:
            # OpenRouter and similar gateways report the cost of the call.
            self._cost = _number(usage.get("cost"))
            return
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else 0
        self._cost = self._price.of(
            prompt_tokens=self._prompt_tokens,
            cached_tokens=int(_number(cached)),
            completion_tokens=self._completion_tokens,
        )


def parsed(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`. Raises Unreadable."""
    try:
        event = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise Unreadable from None
    if not isinstance(event, dict):
        raise Unreadable
    return event


def reported(
    event: Mapping[str, Any], *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ReportedError:
    """The error in `event`, in any of the common forms."""
    error = event.get("error", event)
    if not isinstance(error, dict):
        return ReportedError(str(error), status=status, headers=headers)
    code = error.get("code")
    text = error.get("message") or event.get("detail") or event.get("message") or json.dumps(error)
    if status is None and isinstance(code, int) and 400 <= code < 600:
        status = code
    return ReportedError(
        str(text),
        status=status,
        code=str(code or error.get("type") or ""),
        param=str(error.get("param") or ""),
        headers=headers,
    )


def _joined(content: Any) -> str:
    """The text of content that is a list of parts."""
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _number(value: object) -> float:
    """A count or an amount; zero for anything else."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if usable and isinstance(value, int | float) else 0.0
