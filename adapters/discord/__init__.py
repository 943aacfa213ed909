"""The Discord channel: one bot by discord.py."""
