"""Conditions that are checked without a model: their values, the words that name them, when they are due."""
