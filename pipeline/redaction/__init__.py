"""Keeping secrets out of what is shown, stored and logged. Not a judgement of who may read what."""
