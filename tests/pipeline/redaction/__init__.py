"""Secrets that are taken out, and ordinary text that is not."""
