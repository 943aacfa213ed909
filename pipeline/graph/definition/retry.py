"""How often a node is retried, and after what delay. Pure arithmetic: randomness is an argument."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The executor's retries of one node. Permanent errors and cancellation are never retried."""

    max_attempts: int = 3
    """Total attempts, the first included."""
    delay_s: float = 1.0
    """Wait before the second attempt, in seconds."""
    factor: float = 2.0
    """Each further wait is the previous one times this."""
    max_delay_s: float = 60.0
    """Longest wait in seconds, before jitter."""
    jitter: float = 0.1
    """Up to this share of the wait is added at random, so that many runs do not retry at once."""
    retry_on: tuple[type[Exception], ...] = (Exception,)
    """Only these exceptions are retried; a failed result without an exception always is."""

    def delay(self, attempt: int, chance: float) -> float:
        """Seconds to wait after the failed `attempt` (1 is the first); `chance` is in [0, 1)."""
        try:
            wait = min(self.delay_s * float(self.factor) ** (attempt - 1), self.max_delay_s)
        except OverflowError:
            wait = self.max_delay_s if self.delay_s > 0 else 0.0
        return wait * (1.0 + self.jitter * chance)

    def covers(self, error: Exception) -> bool:
        """Whether `error` is retried."""
        return isinstance(error, self.retry_on) and getattr(error, "permanent", False) is not True
