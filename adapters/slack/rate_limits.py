"""The rate limits of Slack where the configuration names none.

`gateway/delivery/rate_limiter.py` enforces them.
"""

from __future__ import annotations

from adapters.channel import RateLimits

DEFAULT_RATES = RateLimits(chat_per_s=1.0, chat_burst=3, edit_interval_s=1.3)
"""About one post per second and channel; chat.update takes 50 calls a minute (docs.slack.dev, rate
limits)."""
