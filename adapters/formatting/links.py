"""Decide which links are live, and what a reader must see of their address.

A link is live if its address is one that a chat program opens and a reader can judge: a plain web address
with a host name. Of all others the label remains and the address is written out.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import SplitResult, unquote, urlsplit

WEB = frozenset({"http", "https"})
MAX_ADDRESS = 1_000
_HOST_LIKE = re.compile(r"(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,63}|\b\d{1,3}(?:\.\d{1,3}){3}\b")
"""A name within a longer one also counts, so limits lose nothing; without them, long words take quadratic
time."""
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)
_MAIL = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_UNSAFE = str.maketrans({char: f"%{ord(char):02X}" for char in " <>|\"`\\^{}'"})
_DOTS = str.maketrans("\u3002\uff0e\uff61\u2024", "....")


def resolve(label: str, address: str, *, schemes: frozenset[str]) -> tuple[str, str]:
    """The text to show for a link with `label` and `address`, and the address to link it to: empty where
    the link may not be live.

    The text names the real host if the label itself looks like another address.
    """
    label = _shown(label).strip()
    address = "".join(char for char in _shown(address) if not char.isspace())
    target = _live(address, schemes)
    if not target:
        return _spelled_out(label, address), ""
    if not label or same_address(label, target):
        return label or target, target
    host = _host(target)
    return (label if _is_honest(label, host) else f"{label} ({host})"), target


def same_address(label: str, address: str) -> bool:
    """Whether `label` is `address` itself, as people abbreviate it."""
    return _bare(label) == _bare(address)


def _spelled_out(label: str, address: str) -> str:
    if not label or not address or same_address(label, address):
        return label or address
    return f"{label} ({address})"


def _live(address: str, schemes: frozenset[str]) -> str:
    target = address.translate(_UNSAFE)
    try:
        split = urlsplit(target)
    except ValueError:
        return ""
    scheme = split.scheme.lower()
    if scheme not in schemes or len(target) > MAX_ADDRESS or not target.isascii():
        return ""
    target = scheme + target[len(scheme) :]
    if scheme in WEB:
        return target if _is_web_host(split) else ""
    if scheme == "mailto":
        return target if _MAIL.fullmatch(split.path) and not split.netloc else ""
    # tg://user?id=... is a mention of a person, not a link.
    return target if split.netloc and split.netloc.lower() != "user" else ""


def _is_web_host(split: SplitResult) -> bool:
    """Whether the host is a name with a dot, without `user@`, which can disguise any address."""
    try:
        host, _port = split.hostname or "", split.port
    except ValueError:
        return False
    return "@" not in split.netloc and "." in host and ".." not in host and _HOST.fullmatch(host) is not None


def _host(target: str) -> str:
    split = urlsplit(target)
    if split.scheme.lower() == "mailto":
        return unquote(split.path).rpartition("@")[2].lower()
    return (split.hostname or split.netloc).lower()


def _is_honest(label: str, host: str) -> bool:
    # Without combining marks: normalisation sorts long sequences of them in quadratic time.
    bare = "".join(char for char in label if not unicodedata.combining(char))
    claimed = unicodedata.normalize("NFKC", bare.translate(_DOTS)).translate(_DOTS).casefold()
    if "://" in claimed and not _HOST_LIKE.search(claimed):
        return False
    return all(_covers(name.removeprefix("www."), host) for name in _HOST_LIKE.findall(claimed))


def _covers(claimed: str, host: str) -> bool:
    """Whether the label names the host itself or one of its parent domains."""
    bare = host.removeprefix("www.")
    return bare == claimed or bare.endswith("." + claimed)


def _bare(address: str) -> str:
    plain = unquote(address).casefold().removeprefix("mailto:")
    return plain.removesuffix("/")


def _shown(text: str) -> str:
    """Without invisible and direction-changing characters, which only deceive in a link."""
    return "".join(char for char in text if char in "\u200c\u200d" or unicodedata.category(char) != "Cf")
