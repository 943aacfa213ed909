"""The rate limits of Telegram where the configuration names none.

`gateway/delivery/rate_limiter.py` enforces them.
"""

from __future__ import annotations

from adapters.channel import RateLimits

DEFAULT_RATES = RateLimits(
    chat_per_s=1.0, chat_burst=3, room_per_minute=20.0, account_per_s=30.0, edit_interval_s=1.1
)
"""One message a second in a chat, twenty a minute in a group, thirty a second in total: the Bot API's FAQ,
"My bot is hitting limits". The exact limits are unpublished; a `retry_after` always applies."""
