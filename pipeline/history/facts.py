"""Extract lasting facts about a person from the part of a conversation that is about to be summarised.

Policy: only in a private chat, never off the record, only into the person's own book, and no text that reads
like an instruction, because the book is part of later prompts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pipeline.domain.errors import ModelError, StorageError
from pipeline.domain.inert_text import inert
from pipeline.history.summarization import ask, cut_to_tokens
from pipeline.runtime.context import RunContext

_log = logging.getLogger(__name__)

MAX_FACTS_TOKENS = 300
"""The most tokens of the model's answer."""
MAX_FACTS = 12
"""The most facts from one answer."""
MAX_BOOK_CHARS = 16_000
"""The most of a person's book; its oldest captured facts are removed first."""
_MAX_FACT_CHARS = 240
_PART_OF_TURN = 0.15
"""The share of a turn's time that extraction may take, because the answer matters more."""

_TASK = (
    "From the conversation, list lasting facts about the user that will still be useful in months: name,"
    " place, family, work, preferences, projects, dates. One fact a line, in the third person, beginning with"
    " '- '. Only what the user said about themselves; no passwords, keys or numbers of cards and accounts;"
    " nothing that passes. If there is none, answer NONE."
)
_HEADING = "## Auto-captured - {day}"
_CAPTURED = re.compile(r"^## Auto-captured - \d{4}-\d{2}-\d{2}$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_COMMANDS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|always|never|must|should|shall|execute|obey|respond|reply"
    r"|pretend|instruction\w*|prompt\w*|jailbreak|system|assistant|you|your|tool\w*|rules?)\b"
    r"|https?://|[`{}<>]",
    re.IGNORECASE,
)
_SECRETS = re.compile(
    r"\b(?:passwor[dt]|passcode|passphrase|api[ _-]?key|token|secret|pin)\b"
    r"|\d(?:[ -]?\d){11,}|\b[A-Za-z0-9_-]{24,}\b",
    re.IGNORECASE,
)


async def keep_facts(lines: str, context: RunContext) -> None:
    """Extract facts from a transcript with the model, and store them where the policy allows it. Failures are
    logged and not raised: the conversation continues without the facts."""
    scope, settings = context.scope, context.settings
    if scope.foreign:
        _log.info("no facts are kept of a conversation that holds text from elsewhere")
        return
    if not settings.remember_facts or not scope.private or scope.mode == "otr" or scope.depth:
        return
    try:
        said = await ask(
            context.llm,
            _TASK,
            lines,
            max_tokens=MAX_FACTS_TOKENS,
            timeout_s=min(settings.llm_timeout_s, settings.turn_timeout_s * _PART_OF_TURN),
            clock=context.clock,
            redactor=context.redactor,
        )
        await context.budgets.spent(scope, tokens=said.tokens, cost=said.cost)
        if facts := facts_of(said.text):
            await context.facts.remember(scope, facts)
    except (ModelError, StorageError) as error:
        _log.warning("facts could not be kept", extra={"reason": str(error)})


def facts_of(answer: str) -> tuple[str, ...]:
    """The facts in a model's answer, one line each, without `NONE`, instructions and secrets."""
    facts: dict[str, str] = {}
    for line in cut_to_tokens(inert(answer), MAX_FACTS_TOKENS).splitlines():
        fact = " ".join(_BULLET.sub("", line).split())
        if _is_fact(fact):
            facts.setdefault(_key(fact), fact)
    return tuple(facts.values())[:MAX_FACTS]


def with_facts(book: str, facts: Sequence[str], now: float) -> str:
    """A book (Markdown) with `facts` under the heading of the day, in UTC; known facts are not added again. A
    book that is too long loses its oldest captured facts, never a person's own text. The same text where no
    fact is new."""
    known = {_key(_BULLET.sub("", line)) for line in book.splitlines()}
    new = [f"- {fact}" for fact in dict.fromkeys(facts) if _key(fact) not in known]
    if not new:
        return book
    lines = book.rstrip("\n").splitlines()
    heading = _HEADING.format(day=datetime.fromtimestamp(now, UTC).date().isoformat())
    if heading in lines:
        end = _end_of_section(lines, lines.index(heading))
        lines[end:end] = new
    else:
        lines += [*([""] if lines else []), heading, *new]
    while _size(lines) > MAX_BOOK_CHARS and (oldest := _oldest_captured(lines)) is not None:
        del lines[oldest]
    return "\n".join(lines) + "\n"


def _is_fact(fact: str) -> bool:
    if not fact or len(fact) > _MAX_FACT_CHARS or fact.strip(".! ").upper() == "NONE":
        return False
    return not _COMMANDS.search(fact) and not _SECRETS.search(fact)


def _key(fact: str) -> str:
    """The key by which two facts are equal: their words."""
    return " ".join(re.findall(r"\w+", fact.casefold()))


def _end_of_section(lines: Sequence[str], start: int) -> int:
    """The index after the last written line of the section that begins at `start`."""
    end = start + 1
    while end < len(lines) and not lines[end].startswith("#"):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    return end


def _oldest_captured(lines: Sequence[str]) -> int | None:
    """The index of the first captured fact, or of a heading for captured facts that has none left."""
    for index, line in enumerate(lines):
        if not _CAPTURED.match(line):
            continue
        following = lines[index + 1] if index + 1 < len(lines) else "#"
        return index + 1 if following.startswith("- ") else index
    return None


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)
