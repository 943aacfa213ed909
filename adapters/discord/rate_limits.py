"""The rate limits of Discord where the configuration names none.

`gateway/delivery/rate_limiter.py` enforces them.
"""

from __future__ import annotations

from adapters.channel import RateLimits

DEFAULT_RATES = RateLimits(chat_per_s=0.9, chat_burst=2, account_per_s=40.0, edit_interval_s=1.2)
"""Discord's documentation: 50 calls a second per bot. A chat's limits are only in response headers; posts and
edits count separately, about five in five seconds each. discord.py delays calls beyond them."""
