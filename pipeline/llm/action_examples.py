"""What people say who want a built-in tool: the examples that a small model learns its choice from.

A model of half a billion parameters chooses by likeness, not by description. Told of the tools alone it
calls none, or any; shown these it chooses well. Nothing else in Parlour depends on the names here: a tool
that is not among them gets an example made of its description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Somebody's words, and the tool that does it."""

    group: str
    tool: str
    words: str
    arguments: Mapping[str, object] = field(default_factory=dict)


def _of(group: str, tool: str, words: str, **arguments: object) -> Example:
    return Example(group=group, tool=tool, words=words, arguments=arguments)


EXAMPLES = (
    _of("system", "current_time", "Which day is it today?"),
    _of("system", "calculate", "Compute 12.5 * 88", expression="12.5 * 88"),
    _of("files", "list_files", "Show me my files"),
    _of("files", "read_file", "Open own/letter.txt", path="own/letter.txt"),
    _of("notes", "write_note", "Remember that my sister's birthday is May 3.",
        title="sister's birthday", text="My sister's birthday is May 3."),
    _of("notes", "read_notes", "What did I ask you to note?"),
    _of("schedule", "remind_me", "Remind me in an hour to eat.", text="eat", in_minutes=60),
    _of("schedule", "list_reminders", "What reminders are set?"),
    _of("schedule", "cancel_reminder", "Delete reminder r7", id="r7"),
    _of("web", "fetch_page", "Open http://site.org", url="http://site.org"),
    _of("system", "current_time", "How late is it in Paris?", zone="Europe/Paris"),
    _of("notes", "write_note", "Note: call the bank", title="bank", text="Call the bank."),
    _of("system", "calculate", "What is 1234 * 56?", expression="1234 * 56"),
    _of("schedule", "remind_me", "Wake me up in 20 minutes", text="wake up", in_minutes=20),
    _of("web", "fetch_page", "What does https://a.com/b say?", url="https://a.com/b"),
    _of("files", "write_file", "Write 'hello' into own/a.txt", path="own/a.txt", text="hello"),
    _of("files", "search_files", "Which file mentions Berlin?", text="Berlin"),
    _of("files", "list_files", "Which files are there?"),
    _of("notes", "search_notes", "Find the word garden in my notes", text="garden"),
)  # fmt: skip
"""In the order in which they are shown."""

NO_TOOL = (
    "Hello!",
    "What is the capital of Italy?",
    "Write a poem about the sea.",
    "Thank you!",
    "How do I bake bread?",
    "What is the difference between RAM and ROM?",
    "Who are you?",
    "How old is the sun?",
    "I am tired.",
    "Translate 'thank you' to French.",
)
"""What people say who want no tool. Kinds of questions that were answered by a tool for nothing without a
likeness here."""
