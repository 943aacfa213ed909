"""Evals: the bot's answers to our own prompts, judged by code. `make eval`; not a part of the product."""
