"""Keys that their issuers mark: found whole and in any pieces, and names that only begin alike are left."""

from __future__ import annotations

import random
import string

from pipeline.redaction.issuers import LETTERS_AND_DIGITS, WITH_SIGNS
from pipeline.redaction.redactor import Redactor
from tests.pipeline.redaction.secrets_made import leaks
from tests.support.tables import each

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def _some(chars: str, count: int, seed: str) -> str:
    chosen = random.Random(seed)
    return "a1" + "".join(chosen.choice(chars) for _ in range(count - 2))


def _hex(count: int) -> str:
    return _some(_HEX, count, "hex")


TOKENS = (
    *(prefix + _some(_ALNUM, 40, prefix) for prefix in LETTERS_AND_DIGITS),
    *(prefix + _some(_ALNUM + "_-", 40, prefix) for prefix in WITH_SIGNS),
    f"dapi{_hex(32)}",
    f"key-{_hex(32)}",
    f"SK{_hex(32)}",
    f"{_hex(32)}-us21",
    f"v1.0-{_hex(24)}-{_hex(146)}",
    f"access-sandbox-{_hex(8)}-{_hex(4)}-{_hex(4)}-{_hex(4)}-{_hex(12)}",
    f"mfa.{_some(_ALNUM, 84, 'mfa')}",
    f"API-{'A1B2C3D4E5' * 3}",
    "A3-ABCDEF-GHIJK1-23456-ABCDE-FGHIJ-KLMNO",
    f"abcdEFGH123456.atlasv1.{_some(_ALNUM, 60, 'tf')}",
    f"abc8Q~{_some(_ALNUM, 34, 'azure')}",
    f"sgp_{_hex(16)}_{_hex(40)}",
)


def _in_pieces(text: str) -> str:
    stream = Redactor().stream()
    return "".join(map(stream.feed, text)) + stream.finish()


@each("token", TOKENS)
def test_a_marked_key_is_found_whole_and_in_pieces(token: str) -> None:
    text = f'it is "{token}", keep it'
    shown = Redactor().text(text)
    assert shown == f'it is "{token[:4]}[REDACTED]", keep it'
    assert _in_pieces(text) == shown


_WORD = _some(_ALNUM, 24, "word")


@each(
    "text, shown",
    [
        (f"https://hooks.slack.com/services/T01/B02/{_WORD}", "https://hooks.slack.com/services/[REDACTED]"),
        (
            f"https://discord.com/api/v10/webhooks/123456789012345678/{_WORD}_-x",
            "https://discord.com/api/v10/webhooks/123456789012345678/[REDACTED]",
        ),
        (
            f"https://a.webhook.office.com/webhookb2/{_WORD}@b/IncomingWebhook/c",
            "https://a.webhook.office.com/webhookb2/[REDACTED]",
        ),
        (f"AccountName=a;AccountKey={_WORD}+/==;Suffix=b", "AccountName=a;AccountKey=[REDACTED];Suffix=b"),
        (
            f"Cookie: theme=dark; sid={_WORD}; lang=de",
            "Cookie: theme=dark; sid=[REDACTED]; lang=de",
        ),
        (f"Set-Cookie: id={_WORD}; Path=/", "Set-Cookie: id=[REDACTED]; Path=/"),
        ("curl -s -u ada:hunter2 https://a.test", "curl -s -u ada:[REDACTED] https://a.test"),
        ('curl --user "ada:hunter2" x', 'curl --user "ada:[REDACTED]" x'),
    ],
)
def test_what_is_around_a_secret_stays(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown
    assert _in_pieces(text) == shown


@each(
    "text",
    [
        "gsk_gl_shader_args_builder_set_vec2 and r8_unorm, hf_hub_download, key-value-store-2024",
        "sha512-3sLq8wSJz2VZ6wQZ1FhYt5b0c1ZgQ4eZ0w== is no key, nor is dapi2 or access-development-2",
        "docker run -u 1000:1000 image; the cookie: one of two; curl https://a.test -o file-1234567890",
        "mfa.login and API-REFERENCE-2024-EDITION and hooks.slack.com/docs and 1//0 of SG.1",
        "my_test_function_with_a_long_name_2 = glibc-2.31-17 + dp.pts1234 + fc-list --verbose",
    ],
)
def test_names_that_only_look_alike_are_left(text: str) -> None:
    assert Redactor().text(text) == text
    assert _in_pieces(text) == text


def test_no_marked_key_leaks_in_a_long_word() -> None:
    for token in TOKENS:
        assert not leaks(Redactor().text("/" * 5_000 + token + "/" * 5_000), token)
