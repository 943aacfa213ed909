"""Decide when buffered speech is an utterance."""
