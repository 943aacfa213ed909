"""Made-up secrets of every kind, each with the part that must not be seen and what may be around it."""

from __future__ import annotations

import base64
import random
import string
from dataclasses import dataclass

_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "-_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A text with a secret in it."""

    kind: str
    text: str
    secret: str
    """The characters none of which may be shown, but the first four of a token."""


def made_secrets(count: int, seed: int = 7) -> list[Made]:
    """`count` secrets, the kinds in turn."""
    chosen = random.Random(seed)
    return [_KINDS[number % len(_KINDS)](chosen) for number in range(count)]


def leaks(shown: str, secret: str) -> bool:
    """Whether more than the first four characters of the secret can be read anywhere."""
    if shown.startswith(secret[:5]) or f" {secret[:5]}" in shown:
        return True
    return any(secret[at : at + 8] in shown for at in range(4, len(secret) - 7))


def _some(chosen: random.Random, chars: str, count: int) -> str:
    return "".join(chosen.choice(chars) for _ in range(count))


def _token(kind: str, secret: str) -> Made:
    return Made(kind=kind, text=secret, secret=secret)


def _jwt(chosen: random.Random) -> Made:
    parts = [
        base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}'),
        base64.urlsafe_b64encode(b'{"sub":"%d"}' % chosen.randrange(10**12)),
    ]
    text = ".".join(part.rstrip(b"=").decode() for part in parts)
    return _token("jwt", f"{text}.{_some(chosen, _URLSAFE, 43)}")


def _password(chosen: random.Random) -> str:
    return _some(chosen, _ALNUM, 6) + chosen.choice(string.digits) + _some(chosen, _ALNUM + "!$%*", 9) + "x7"


def _database(chosen: random.Random) -> Made:
    scheme = chosen.choice(["postgres", "mysql", "mongodb+srv", "redis", "amqp"])
    secret = _password(chosen)
    return Made(kind="url", text=f"{scheme}://bot:{secret}@db.example.org:5432/parlour", secret=secret)


def _basic(chosen: random.Random) -> Made:
    secret = _password(chosen)
    return Made(kind="url", text=f"https://ada:{secret}@example.org/a?b=c", secret=secret)


def _assigned(chosen: random.Random) -> Made:
    name = chosen.choice(["api_key", "token", "PASSWORD", "client_secret", "AWS_SECRET_ACCESS_KEY", "pwd"])
    sign = chosen.choice(["=", ": ", " = ", '="', "='"])
    secret = _password(chosen).replace("$", "z").replace("%", "q")
    return Made(kind="assigned", text=f"{name}{sign}{secret}", secret=secret)


def _json(chosen: random.Random) -> Made:
    secret = _some(chosen, _ALNUM, 19) + "4x"
    return Made(kind="assigned", text=f'{{"api_key": "{secret}", "n": 1}}', secret=secret)


def _bearer(chosen: random.Random) -> Made:
    secret = _some(chosen, _URLSAFE, 30) + "a1"
    return Made(kind="bearer", text=f"Authorization: Bearer {secret}", secret=secret)


def _private_key(chosen: random.Random) -> Made:
    name = chosen.choice(["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"])
    body = base64.b64encode(chosen.randbytes(chosen.choice([121, 600, 1190]))).decode()
    end = chosen.choice(["\n", "\\n"])
    lines = end.join(body[at : at + 64] for at in range(0, len(body), 64))
    text = f"-----BEGIN {name}-----{end}{lines}{end}-----END {name}-----"
    return Made(kind="private_key", text=text, secret=lines)


_KINDS = (
    lambda chosen: _token("aws", chosen.choice(["AKIA", "ASIA"]) + _some(chosen, string.ascii_uppercase, 16)),
    lambda chosen: _token("github", chosen.choice(["ghp_", "gho_"]) + _some(chosen, _ALNUM, 36)),
    lambda chosen: _token("github", "github_pat_" + _some(chosen, _ALNUM + "_", 82)),
    lambda chosen: _token("openai", "sk-proj-" + _some(chosen, _URLSAFE, 60) + "A9"),
    lambda chosen: _token("stripe", chosen.choice(["sk_live_", "rk_live_"]) + _some(chosen, _ALNUM, 24)),
    _jwt,
    _database,
    _basic,
    _assigned,
    _json,
    lambda chosen: _token("google", "AIza" + _some(chosen, _URLSAFE, 35)),
    lambda chosen: _token("slack", f"xoxb-{_some(chosen, string.digits, 12)}-{_some(chosen, _ALNUM, 24)}"),
    lambda chosen: _token("slack", f"xapp-1-A{_some(chosen, string.digits, 10)}-{_some(chosen, _ALNUM, 40)}"),
    lambda chosen: _token("telegram", f"{chosen.randrange(10**8, 10**10)}:AA{_some(chosen, _URLSAFE, 33)}"),
    lambda chosen: _token(
        "discord",
        f"M{_some(chosen, _ALNUM, 25)}.{_some(chosen, _URLSAFE, 6)}.{_some(chosen, _URLSAFE, 38)}",
    ),
    _private_key,
    lambda chosen: _token("npm", "npm_" + _some(chosen, _ALNUM, 36)),
    lambda chosen: _token("gitlab", "glpat-" + _some(chosen, _URLSAFE, 20)),
    lambda chosen: _token("hugging_face", "hf_" + _some(chosen, _ALNUM, 34)),
    _bearer,
)
