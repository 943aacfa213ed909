"""The Discord channel: one bot, through discord.py."""
