"""Example messages that need no tool, for the prompt in which a small model chooses a tool.

Built-in tools are not among its choices: rules find the requests for them (`requests`).
"""

from __future__ import annotations

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
"""Kinds of questions for which the model chose a needless tool without a similar example here."""
