"""Speech samples to a voice message as phones send them: OGG with Opus."""
