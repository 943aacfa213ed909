"""Check single values beyond bounds and types. Each refusal names the problem and a remedy.

No refusal repeats a text value: a secret written into the wrong setting must not reach a log.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

from pydantic_core import PydanticCustomError

from pipeline.domain.errors import InvalidInput
from pipeline.schedules.quiet_hours import QuietHours

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_LANGUAGE = re.compile(r"[a-z]{2}")
_LANGUAGE_TAG = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?")
_VOICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
_ACCOUNT = re.compile(r"[a-z0-9-]{1,32}")
_GRAPH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SAVED = "saved:"
_ENDPOINT = re.compile(r"[A-Za-z0-9_.-]+/[\x21-\x7e]+")
_COMPUTE_TYPES = (
    "auto",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "float16",
    "bfloat16",
    "float32",
)
"""The types of https://opennmt.net/CTranslate2/quantization.html that are used with Whisper models."""
_WEBHOOK = "https://bot.example.org/telegram"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def check_name(value: str) -> str:
    """A name for people: printable, not blank."""
    if not value.strip() or not value.isprintable():
        raise _refused("is blank or holds a control character", "write a name of printable characters")
    return value


def check_quiet_hours(value: str) -> str:
    """Two times of the day, or nothing."""
    if value:
        try:
            QuietHours.parsed(value)
        except InvalidInput:
            raise _refused("is not from one time of the day to another", "write 22:00-07:00") from None
    return value


def check_time_zone(value: str | None) -> str | None:
    """A time zone's IANA name that this machine knows."""
    if value is None:
        return None
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise _refused("is no time zone", "write an IANA name such as Europe/Berlin or UTC") from None
    return value


def check_graph(value: str | None) -> str | None:
    """A graph's name, the name of a saved workflow, or the path of a graph document."""
    if value is None or _GRAPH.fullmatch(value) or value.startswith(_SAVED):
        return value
    if not value.endswith(".json"):
        raise _refused("is neither a name nor a file that ends in .json", "see `parlour graph show`")
    check_path(value)
    return value


def check_gate(value: str | None) -> str | None:
    """As `check_graph`, but no saved workflow, or empty for no gate."""
    if value is not None and value.startswith(_SAVED):
        raise _refused("is a saved workflow, which is no gate", "write a graph's name or file")
    return value if value == "" else check_graph(value)


def check_path(value: object) -> object:
    """A path's text, before it is made a path: not empty, no control characters, no tilde."""
    text = str(value) if isinstance(value, str | Path) else "."
    if not text or not text.isprintable():
        raise _refused("is empty or holds a control character", "write a path")
    if text.startswith("~"):
        raise _refused("starts with ~, which is not expanded here", "write the path in full")
    return value


def check_host(value: str) -> str:
    """An address or a name to listen on, without scheme, brackets and port."""
    if _is_address(value) or _HOST_NAME.fullmatch(value):
        return value
    raise _refused("is not an IP address or a host name", "write for example 127.0.0.1, ::1 or localhost")


def check_origin(value: str) -> str:
    """An origin exactly as a browser sends it: scheme://host or scheme://host:port, in lower case."""
    address = _split(value)
    if address is None or value != value.lower() or value != f"{address.scheme}://{address.netloc}":
        raise _refused(
            "is not an origin",
            "write only scheme, host and port, in lower case, like https://bot.example.org",
        )
    if address.port == _DEFAULT_PORTS[address.scheme]:
        raise _refused("names the scheme's own port, which browsers leave out", f"remove :{address.port}")
    return value


def check_api_base(value: str | None) -> str | None:
    """An http(s) address without credentials, query and fragment."""
    return _checked_base(value, example="http://127.0.0.1:11434", key_goes="use llm.api_key")


def check_platform_base(value: str | None) -> str | None:
    """As `check_api_base`, for the API of a chat platform."""
    return _checked_base(value, example="http://127.0.0.1:8081", key_goes="use the token's own setting")


def check_search_url(value: str | None) -> str | None:
    """As `check_api_base`, for a search engine."""
    return _checked_base(value, example="http://127.0.0.1:8888", key_goes="use tools.search.api_key")


def check_evaluator_base(value: str | None) -> str | None:
    """As `check_api_base`, for the shield's evaluator."""
    return _checked_base(value, example="http://127.0.0.1:11434", key_goes="use shield.evaluator_api_key")


def check_embedding_base(value: str | None) -> str | None:
    """As `check_api_base`, for the embedding model of the memory."""
    return _checked_base(value, example="http://127.0.0.1:11434", key_goes="use memory.embedding_api_key")


def check_classifier_base(value: str | None) -> str | None:
    """As `check_api_base`, for the crisis classifier."""
    return _checked_base(value, example="http://127.0.0.1:11434", key_goes="use safety.classifier_api_key")


def check_gateway_url(value: str | None) -> str | None:
    """A ws(s) address without credentials, query and fragment."""
    if value is not None and not value.startswith(("ws://", "wss://")):
        raise _refused("is not an address of a gateway", "write for example wss://gateway.example.org")
    _checked_base(
        value and f"http{value.removeprefix('ws')}",
        example="wss://gateway.example.org",
        key_goes="use the token's own setting",
    )
    return value


def check_webhook_url(value: str | None) -> str | None:
    """An https address with a path; http is allowed if only this machine can call it."""
    if value is None:
        return None
    address = _split(value, credentials=True)
    if address is None or address.query or address.fragment or "@" in address.netloc:
        raise _refused("is not an address to call", f"write for example {_WEBHOOK}")
    if address.scheme != "https" and not is_loopback(address.hostname or ""):
        raise _refused("is not encrypted: it starts with http://", "write https://")
    if address.port == _DEFAULT_PORTS[address.scheme]:
        raise _refused("names the scheme's own port, which callers leave out", f"remove :{address.port}")
    if address.path in ("", "/"):
        raise _refused("has no path", f"write for example {_WEBHOOK}")
    return value


def check_account(value: str) -> str:
    """A short name in lower case."""
    if _ACCOUNT.fullmatch(value) is None:
        raise _refused("is not 1 to 32 of the characters a-z, 0-9 and -", 'write for example "main"')
    return value


def check_language(value: str | None) -> str | None:
    """A two-letter code in lower case."""
    if value is not None and _LANGUAGE.fullmatch(value) is None:
        raise _refused("is not a two-letter language code", "write for example en, or remove it")
    return value


def check_language_tag(value: str | None) -> str | None:
    """A BCP 47 tag of a language, a script and a region, in its usual case; the last two may be missing."""
    if value is None:
        return None
    found = _LANGUAGE_TAG.fullmatch(value.lower())
    if found is None:
        raise _refused("is not a language tag", "write for example de, pt-BR or zh-Hant-TW, or remove it")
    language, script, region = found.groups()
    return "-".join(part for part in (language, script and script.title(), region and region.upper()) if part)


def check_voice(value: str | None) -> str | None:
    """The name of a voice's file without its ending."""
    if value is not None and _VOICE.fullmatch(value) is None:
        raise _refused(
            "is not the name of a voice", "write the name of its file without .onnx, such as en_US-ryan-low"
        )
    return value


def check_llm_model(value: str) -> str:
    """`local`, `scripted:…` or the name of a LiteLLM model."""
    if value.startswith("scripted:"):
        return value
    if not value or not value.isprintable() or " " in value:
        raise _refused(
            "is not the name of a model", 'write "local", "scripted:…" or a name like "openai/gpt-5-mini"'
        )
    return value


def check_transcriber(value: str) -> str:
    """`whisper`, `scripted:` and the transcript, or the name of a LiteLLM model with its provider."""
    if value == "whisper" or (value.startswith("scripted:") and value != "scripted:"):
        return value
    if _ENDPOINT.fullmatch(value):
        return value
    raise _refused(
        "is not a known transcriber",
        'write "whisper", "scripted:" and the text to hear, or a name like "openai/whisper-1"',
    )


def check_embedding(value: str) -> str:
    """`none`, `local`, or the name of a LiteLLM model with its provider."""
    if value in ("none", "local") or _ENDPOINT.fullmatch(value):
        return value
    raise _refused(
        "is not a known embedding model",
        'write "none", "local" or a name like "openai/text-embedding-3-small"',
    )


def check_compute_type(value: str) -> str:
    """`auto` or one of CTranslate2's names."""
    if value not in _COMPUTE_TYPES:
        raise _refused("is not a type that CTranslate2 knows", f"write one of {', '.join(_COMPUTE_TYPES)}")
    return value


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to a server that listens on `host`."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _checked_base(value: str | None, *, example: str, key_goes: str) -> str | None:
    if value is None:
        return None
    address = _split(value, credentials=True)
    if address is None or address.query or address.fragment:
        raise _refused("is not an address of an API", f"write for example {example}")
    if "@" in address.netloc:
        raise _refused("holds a user name or a password", f"remove it and {key_goes}")
    return value


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _split(value: str, *, credentials: bool = False) -> SplitResult | None:
    """The parts of an http(s) address, or None if it is not one."""
    if not value.isprintable() or any(character in value for character in ' \\"<>^`{|}'):
        return None
    try:
        address = urlsplit(value)
        # Reading the port is what checks it.
        usable = address.scheme in _DEFAULT_PORTS and address.hostname and address.port != 0
    except ValueError:
        return None
    if not usable or address.netloc.endswith(":") or ("@" in address.netloc and not credentials):
        return None
    return address if "*" not in address.netloc else None


def _refused(what: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{what}", {"what": what, "fix": fix})
