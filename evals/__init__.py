"""Evals: what the bot answers to prompts of our own, judged by code. `make eval`; not a part of the product."""
