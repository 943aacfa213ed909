"""Child processes: supervision, framing, sandbox."""
