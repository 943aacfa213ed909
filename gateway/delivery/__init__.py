"""Show answers on channels: live previews, then durable replies with retries and rate limits."""
