"""Tests of the care of a conversation's history."""
