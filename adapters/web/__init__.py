"""The web channel: one WebSocket protocol, and the page that uses it."""
