"""The console channel: a conversation in the terminal that started the gateway."""
