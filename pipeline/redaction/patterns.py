"""Patterns of secrets within one word: a run of characters without a space.

Every pattern has a bounded beginning and, where the secret may be longer, a class of characters of any
number after it. A search examines each character a bounded number of times, so that no text makes it slow.
Not here: secrets across several words (`words`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.domain.frozen import dataclass
from pipeline.redaction.issuers import EXACT, HOOKS, LETTERS_AND_DIGITS, MARKS, WITH_SIGNS
from pipeline.redaction.known import MARK, SHOWN

VALUE_CLASS = r"[A-Za-z0-9_\-./+~!@#$%^*\u00c0-\u024f]"
"""The characters of a password or key in `name=value`, without base64's padding: with `=`, a chain of
assignments would be one value, which is searched again from each sign."""
MIN_VALUE_CHARS = 8
KEY_NAMES = (
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "access_key_id",
    "secret",
    "secret_key",
    "secret-key",
    "secretkey",
    "private_key",
    "account_key",
    "auth_key",
    "encryption_key",
    "master_key",
    "shared_key",
    "signing_key",
    "token",
    "password",
    "passwd",
    "passphrase",
    "pwd",
)
"""The ends of names whose value is secret."""

OPENERS = (*KEY_NAMES, "authorization")
"""Words after which a sign and then a secret may follow; `bearer` needs no sign."""

ANNOUNCING = ("bearer", "cookie", "curl")
"""Words that are not names, but may have a secret later on their line."""

_NAME = "|".join(re.escape(name).replace("_", "_?") for name in sorted(KEY_NAMES, key=len, reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of secret."""

    name: str
    begins: str
    """A regular expression that matches at most a few hundred characters, or one run of `tail`."""
    mark: str
    """A cheaper regular expression that matches within every match of `begins`. Each alternative starts with
    a plain character, which makes the search fast."""
    tail: str = ""
    """The class of characters after `begins`; empty where the secret is bounded."""


def _one_of(words: Iterable[str]) -> str:
    """A pattern for any of `words`, grouped by first letter, so that most positions fail at once."""
    rests: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())


# The issuers document the prefixes; lengths are lower bounds, so that a longer key is found too.
_SHAPES = (
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    Shape(
        name="aws",
        begins=r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16,}",
        mark="AKIA|ASIA|ABIA|ACCA",
        tail="[A-Z0-9]",
    ),
    # https://github.blog/engineering/behind-githubs-new-authentication-token-formats/
    Shape(
        name="github",
        begins=r"(?<![A-Za-z0-9_])(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}",
        mark="ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
        tail="[A-Za-z0-9_]",
    ),
    Shape(
        name="gitlab",
        begins=r"(?<![A-Za-z0-9_-])glpat-[A-Za-z0-9_.-]{16,}",
        mark="glpat-",
        tail="[A-Za-z0-9_.-]",
    ),
    Shape(
        name="npm",
        begins=r"(?<![A-Za-z0-9_])(?:npm|hf)_[A-Za-z0-9]{30,}",
        mark="npm_|hf_",
        tail="[A-Za-z0-9]",
    ),
    # https://docs.stripe.com/keys
    Shape(
        name="stripe",
        begins=r"(?<![A-Za-z0-9_])(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}",
        mark="sk_live_|sk_test_|rk_live_|rk_test_",
        tail="[A-Za-z0-9]",
    ),
    # Requires a digit or a capital letter: names of styles begin with `sk-` too.
    Shape(
        name="model_key",
        begins=r"(?<![A-Za-z0-9_-])sk-(?=[a-z_-]{0,64}[A-Z0-9])[A-Za-z0-9_-]{16,}",
        mark="sk-",
        tail="[A-Za-z0-9_-]",
    ),
    Shape(
        name="google", begins=r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{30,}", mark="AIza", tail="[A-Za-z0-9_-]"
    ),
    # https://docs.slack.dev/authentication/tokens/
    Shape(
        name="slack",
        begins=r"(?<![A-Za-z0-9])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}",
        mark=r"xox[a-z]-|xapp-",
        tail="[A-Za-z0-9-]",
    ),
    # Requires a capital letter: a time and a UUID have none.
    Shape(
        name="telegram",
        begins=r"(?<![0-9])[0-9]{6,12}:(?=[a-z0-9_-]{0,34}[A-Z])[A-Za-z0-9_-]{30,}",
        mark=r":(?<=[0-9]{6}:)[A-Za-z0-9_-]{30}",
        tail="[A-Za-z0-9_-]",
    ),
    Shape(
        name="discord",
        begins=r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{5,7}\.[A-Za-z0-9_-]{27,}",
        mark=r"\.[A-Za-z0-9_-]{5,7}\.[A-Za-z0-9_-]{27}",
        tail="[A-Za-z0-9_-]",
    ),
    # RFC 7519; `eyJ` is `{"` in base64.
    Shape(
        name="jwt",
        begins=r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{10}[A-Za-z0-9_.-]*",
        mark=r"eyJ[A-Za-z0-9_-]{10}",
        tail="[A-Za-z0-9_.-]",
    ),
    # Any URL with a password: for a database, or with basic authentication.
    Shape(
        name="url",
        begins=r"://[^\s/?#:\"'<>]{0,128}:(?P<password>(?!\[REDACTED\]@)[^\s/\"'<>]{1,512})@(?=[^\s@])",
        mark=r"://[^\s/?#:\"'<>]{0,128}:[^\s/\"'<>]{1,512}@",
    ),
    # Addresses to which anyone who knows them can post.
    Shape(
        name="hook",
        begins=rf"(?i:{'|'.join(HOOKS)})(?P<path>[A-Za-z0-9_@/.=-]{{16,}})",
        mark="",
        tail="[A-Za-z0-9_@/.=-]",
    ),
    Shape(
        name="issued",
        begins=rf"(?<![A-Za-z0-9])(?:{_one_of(LETTERS_AND_DIGITS)})(?=[A-Za-z]{{0,64}}[0-9])[A-Za-z0-9]{{20,}}",
        mark="",
        tail="[A-Za-z0-9]",
    ),
    Shape(
        name="issued_signs",
        begins=rf"(?<![A-Za-z0-9])(?:{_one_of(WITH_SIGNS)})(?=[A-Za-z_.=/~+-]{{0,64}}[0-9])[A-Za-z0-9_.=/~+-]{{20,}}",
        mark="",
        tail="[A-Za-z0-9_.=/~+-]",
    ),
    Shape(
        name="issued_exact",
        begins=rf"(?<![A-Za-z0-9_-])(?:{'|'.join(EXACT)})[A-Za-z0-9_-]*",
        mark="",  # only in long words: see `may_hold_secret`
        tail="[A-Za-z0-9_-]",
    ),
    Shape(
        name="assigned",
        begins=rf"(?i:{_NAME})\\?[\"'`]?(?:=|:=?|=>)\\?[\"'`]?(?P<value>{VALUE_CLASS}{{{MIN_VALUE_CHARS},}}={{0,2}})",
        mark="",  # its names: see `may_hold_secret`
        tail=VALUE_CLASS,
    ),
)
FOUND = re.compile("|".join(f"(?P<{shape.name}>{shape.begins})" for shape in _SHAPES))
MIN_CHARS = 7
"""The length of the shortest word with a secret: a URL with a password."""
TAILS = {shape.name: re.compile(f"{shape.tail}*") for shape in _SHAPES if shape.tail}

# Letters that a search without case treats as ASCII letters, and `str.lower` does not.
_ODD_LETTERS = ("\u0130", "\u0131", "\u017f")
_URL_MARK = re.compile(next(shape.mark for shape in _SHAPES if shape.name == "url"))
_LONG_MARKS = re.compile("|".join([shape.mark for shape in _SHAPES if shape.mark and shape.name != "url"]))
_LONG_CHARS = 15
"""The length of the shortest word that matches a pattern with a mark, except a URL."""
_ISSUED_MARKS = re.compile("|".join(MARKS))
_ISSUED = tuple(
    re.compile(shape.begins) for shape in _SHAPES if shape.name in ("issued", "issued_signs", "issued_exact")
)
"""The patterns from `issuers` that a mark is within. Searching one after the other is several times as fast
as all in one."""
_HOOK = re.compile(next(shape.begins for shape in _SHAPES if shape.name == "hook"))
_IN_HOOKS = ".com/"
"""In lower case within every address of a hook, also where its own mark is not in lower case."""
_ISSUED_CHARS = 20
"""The length of the shortest key in `issuers`."""
_STEMS = ("key", "secret", "token", "passw", "passphrase", "pwd", "authorization", *ANNOUNCING)
"""Each name contains one of these; searching for these is ten times as fast."""
_SHORT_CHARS = 64
"""Up to this length, a full search is faster than the checks that avoid one."""

_NAMES = re.compile(_one_of((*OPENERS, *(one.replace("_", "") for one in OPENERS), *ANNOUNCING)))
_MARKS = re.compile("|".join([*_ODD_LETTERS, _URL_MARK.pattern, _LONG_MARKS.pattern]))

_WITHIN = {"url": "password", "assigned": "value", "hook": "path"}
"""Patterns whose named group alone is secret."""
_REFERENCE = re.compile(r"env:|file:")


def may_hold_secret(text: str) -> bool:
    """Whether `text` may contain a secret or announce one; False is certain and cheap to compute."""
    if len(text) <= _SHORT_CHARS:
        return (
            _MARKS.search(text) is not None
            or _NAMES.search(text.lower()) is not None
            or (len(text) >= _ISSUED_CHARS and _ISSUED_MARKS.search(text) is not None)
        )
    if any(map(text.__contains__, _ODD_LETTERS)):
        return True
    low = text.lower()
    if any(map(low.__contains__, _STEMS)) and _NAMES.search(low) is not None:
        return True
    if "://" in text and _URL_MARK.search(text) is not None:
        return True
    words = [word for word in text.split() if len(word) >= _LONG_CHARS]
    if not words:
        return False
    long = " ".join(words)
    # The ids in our own log lines match such marks too, so the full patterns decide.
    if _LONG_MARKS.search(long) is not None:
        return FOUND.search(long) is not None
    if _ISSUED_MARKS.search(long) is None:
        return False
    if _IN_HOOKS in low and _HOOK.search(long) is not None:
        return True
    marked = [word for word in words if _ISSUED_MARKS.search(word) is not None]
    return any(issued.search(word) for word in marked for issued in _ISSUED)


def secret_within(match: re.Match[str]) -> tuple[int, int, str] | None:
    """The start and end of the secret in a match of `FOUND`, and its replacement; None where the match is no
    secret."""
    kind = match.lastgroup or ""
    if kind == "assigned" and not is_value(match["value"], after=match.string[match.end() :][:1]):
        return None
    start, end = match.span(_WITHIN.get(kind, 0))
    shown = "" if kind in _WITHIN else match.string[start : start + SHOWN]
    return start, end, shown + MARK


def is_value(value: str, *, after: str = "") -> bool:
    """Whether an assigned `value` is a secret and not a name in a program or an ordinary word: it has letters
    and digits, and `after`, the next character, does not call or index it."""
    if len(value) < MIN_VALUE_CHARS or after in ("(", "[", "{") or _REFERENCE.match(value):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
