"""Judges a turn by what it did and whether its answer says exactly that. No model judges."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from evals.prompts import Prompt

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=ZONE)
"""The eval's time, a Sunday."""
FILE, FILE_TEXT = "todo.txt", "water the plants\n"
NOTE_TITLE, NOTE_TEXT = "bike", "bike code 9931"
REMINDER = "pay the rent"
_CLAIMS = re.compile(
    r"\b(?:i(?:['’]ve| have)(?: \w+)? (?:set|saved|noted|sent|deleted|added|scheduled|created)|(?:i['’]ll|i will) remind"
    r"|reminder (?:is|has been) set|(?:note|file) (?:is|has been) (?:saved|created|kept)"
    r"|ich habe .{0,60}(?:gespeichert|notiert|erstellt|gelöscht)|ich werde dich .{0,40}erinnern"
    r"|j['’]ai (?:noté|enregistré|créé|ajouté)|je (?:te|vous) rappellerai|he (?:guardado|anotado|creado|añadido)"
    r"|te recordaré)\b",
    re.IGNORECASE,
)
_MAKERS = re.compile(r"openai|alibaba|qwen|anthropic|google|chatgpt|microsoft", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a person has after the turn."""

    files: dict[str, str]
    notes: dict[str, str]
    """Text by title."""
    reminders: list[tuple[datetime, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One prompt's turn."""

    prompt: Prompt
    answer: str
    ran: list[str] = field(default_factory=list)
    """The tools that were proposed, without loaders."""
    summary: str = ""
    """The arguments of the last one, in one line for people."""
    stored: Stored

    @property
    def right_tool(self) -> bool:
        """Whether the expected tool ran, and no other."""
        return self.ran == ([] if self.prompt.tool is None else [self.prompt.tool])

    @property
    def right_argument(self) -> bool:
        """Whether the tool got what the message says. True if no tool was expected and none ran."""
        return self.right_tool and self._arguments_are_right()

    @property
    def true_words(self) -> bool:
        """Whether the answer says what was done, and nothing else."""
        if not self.answer.strip():
            return False
        if self.prompt.tool is None:
            clean = not _CLAIMS.search(self.answer) and not _MAKERS.search(self.answer)
            return clean and self.right_tool
        return self.right_tool and self._says_what_was_done()

    def _new_reminders(self) -> list[tuple[datetime, str]]:
        return [(due, text) for due, text in self.stored.reminders if text != REMINDER]

    def _arguments_are_right(self) -> bool:
        wanted, tool = self.prompt.arguments, self.prompt.tool
        text = wanted.get("text", "").casefold()
        if self.prompt.off_the_record:
            return text in self.summary.casefold()
        if tool == "remind_me":
            new = self._new_reminders()
            return (
                len(new) == 1
                and f"{new[0][0]:%Y-%m-%dT%H:%M}" == wanted["due"]
                and text in new[0][1].casefold()
            )
        if tool == "repeat_for_me":
            return any(text in kept.casefold() for _, kept in self._new_reminders())
        if tool == "write_note":
            return any(text in kept.casefold() for kept in self.stored.notes.values())
        if tool in ("append_file", "write_file"):
            return wanted["text"] in self.stored.files.get(wanted["path"], "").splitlines()
        if tool == "delete_file":
            return wanted["path"] not in self.stored.files
        if tool == "current_time":
            # The summary for people does not name the zone; the answer shows it.
            return self._says_what_was_done()
        return all(value.replace(" ", "") in self.summary.replace(" ", "") for value in wanted.values())

    def _says_what_was_done(self) -> bool:
        answer, wanted = self.answer, self.prompt.arguments
        if self.prompt.off_the_record:
            kept = self._new_reminders() or len(self.stored.notes) > 1
            return "off the record" in answer and not kept
        match self.prompt.tool:
            case "remind_me":
                new = self._new_reminders()
                if not new:
                    return "not done" in answer
                return all(f"{due:%Y-%m-%d %H:%M}" in answer and text in answer for due, text in new)
            case "repeat_for_me":
                return any(text in answer for _, text in self._new_reminders())
            case "write_note":
                return any(text in answer for title, text in self.stored.notes.items() if title != NOTE_TITLE)
            case "append_file" | "write_file":
                return wanted["path"] in answer and wanted["path"] in self.stored.files
            case "delete_file":
                return "deleted" in answer and wanted["path"] not in self.stored.files
            case "read_file":
                return FILE_TEXT.strip() in answer
            case "list_files":
                return FILE in answer
            case "read_notes":
                return NOTE_TEXT in answer
            case "list_reminders":
                return REMINDER in answer
            case "calculate":
                left, sign, right = wanted["expression"].split()
                value = {
                    "*": int(left) * int(right),
                    "/": int(left) // int(right),
                    "-": int(left) - int(right),
                }[sign]
                return answer.strip().endswith(str(value))
            case "current_time":
                zone = ZoneInfo("Asia/Tokyo") if "zone" in wanted else ZONE
                return f"{NOW.astimezone(zone):%H:%M}" in answer
            case _:
                return False
