"""Live speech: one session per open microphone."""
