"""What people say who want no tool: the examples beside which a small model chooses a tool of others.

Built-in tools are not among its choices: what asks for them is read by rules (`requests`).
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
"""Kinds of questions that were answered by a tool for nothing without a likeness here."""
