"""Run one queued entry at a time per thread and commit its result."""
