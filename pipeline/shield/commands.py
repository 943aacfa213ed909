"""Classify commands by their parsed argument lists: those that are known to change nothing, and all others.

A command is never judged by its first word alone: `git log` reads, `git push --force` does not. What is not
in the table below, with every one of its options, is not known to be harmless: `python -c` and `docker run`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pipeline.domain.frozen import dataclass

CommandClass = Literal["reads", "other"]

_SHELL_WORDS: Final = frozenset("|&;<>()$`\n\r\0*?[]{}~!#")
"""Characters that a shell interprets. A command line with one of them, outside quotes or within, is not
parsed further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reads:
    """A program that only reads."""

    flags: frozenset[str] = frozenset()
    """Options without a value, `-l` and `--long`. Short ones may be joined: `-la`."""
    valued: frozenset[str] = frozenset()
    """Options with a value: `-n 5`, `-n5`, `--max-count=5`."""
    operands: int | None = None
    """The most operands; None for any number."""


def _reads(flags: str = "", valued: str = "", operands: int | None = None) -> _Reads:
    return _Reads(flags=frozenset(flags.split()), valued=frozenset(valued.split()), operands=operands)


_PROGRAMS: Final[Mapping[str, _Reads]] = {
    "basename": _reads("-z", "-s", 2),
    "cat": _reads("-A -b -E -e -n -s -T -t -v --number --show-all"),
    "cmp": _reads("-b -l -s", "-n", 2),
    "cut": _reads("-s", "-b -c -d -f --delimiter --fields --characters"),
    "date": _reads("-u -R --utc --rfc-email", "-d --date --iso-8601", 0),
    "df": _reads("-h -H -k -i -T --human-readable"),
    "diff": _reads("-q -r -u -w -b -i -N --brief --recursive --unified", "-U", 2),
    "dirname": _reads("-z"),
    "du": _reads("-h -s -a -c -k -b --human-readable --summarize", "-d --max-depth"),
    "echo": _reads("-n -e -E"),
    "file": _reads("-b -i --brief --mime"),
    "grep": _reads(
        "-i -v -n -c -l -L -r -R -w -x -E -F -o -h -H -q -s --ignore-case --line-number --count --recursive",
        "-A -B -C -m -e --max-count --include --exclude",
    ),
    "head": _reads("-q -v", "-n -c --lines --bytes"),
    "id": _reads("-u -g -G -n", "", 1),
    "ls": _reads("-l -a -A -h -R -r -t -S -1 -d -F -i -n --all --human-readable --recursive"),
    "md5sum": _reads("-b -t"),
    "pwd": _reads("-L -P", "", 0),
    "realpath": _reads("-e -m -s"),
    "sha256sum": _reads("-b -t"),
    "stat": _reads("-L -t", "-c --format"),
    "tail": _reads("-q -v", "-n -c --lines --bytes"),
    "tr": _reads("-c -d -s", "", 2),
    "uname": _reads("-a -s -r -m -n -v -o", "", 0),
    "wc": _reads("-l -w -c -m -L --lines --words --bytes --chars"),
    "whoami": _reads("", "", 0),
}
"""`find`, `sort`, `uniq`, `env`, `awk` and `sed` are left out: each can write files or start programs. So are
`git`, `pip`, `docker` and `kubectl`: a file in the folder can name a program that they start.
"""


def command_class(argv: Sequence[str]) -> CommandClass:
    """`reads` for a command whose program and every option are known to change nothing and to
    send nothing; `other` for all else, also for an empty list.

    `argv` is the parsed argument list, which is executed as it is, without a shell. The program is a bare
    name: a path could name any file.
    """
    words = list(argv)
    if not words or any("\0" in word for word in words):
        return "other"
    known = _PROGRAMS.get(words[0])
    return "other" if known is None or not _fits(known, words[1:]) else "reads"


def command_words(line: str) -> tuple[str, ...]:
    """The argument list of a command line that needs no shell; empty if it cannot be parsed, or if a shell
    would interpret a part of it."""
    if not _SHELL_WORDS.isdisjoint(line):
        return ()
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def _fits(known: _Reads, words: Sequence[str]) -> bool:
    """Whether all options are known ones, and the operands are not too many."""
    operands, at, only_operands = 0, 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if only_operands or word == "-" or not word.startswith("-"):
            operands += 1
        elif word == "--":
            only_operands = True
        elif word in known.flags or _is_count(word, known):
            continue
        elif word in known.valued:
            at += 1
            if at > len(words):
                return False
        elif not (_has_value(word, known) or _are_joined(word, known)):
            return False
    return known.operands is None or operands <= known.operands


def _is_count(word: str, known: _Reads) -> bool:
    """`-5`, where `-n 5` is known."""
    return "-n" in known.valued and word[1:].isascii() and word[1:].isdigit()


def _has_value(word: str, known: _Reads) -> bool:
    """`--name=value`, or `-nvalue`."""
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        return bool(equals) and name in known.valued
    return word[:2] in known.valued and len(word) > len("-n")


def _are_joined(word: str, known: _Reads) -> bool:
    """`-la`: short options without values."""
    return not word.startswith("--") and all(f"-{letter}" in known.flags for letter in word[1:])
