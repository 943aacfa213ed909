"""Decide who may write to the bot, how often, and at what cost."""
