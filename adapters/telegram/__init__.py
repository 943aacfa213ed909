"""Telegram: one bot, by polling or by webhook, with python-telegram-bot as the client."""
