"""Decide what of the extractors' candidates is written, and when: rules alone, no model, no store."""
