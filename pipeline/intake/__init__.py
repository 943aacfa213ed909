"""The first node of every run: cleans the text and fits the history. Never calls a model."""
