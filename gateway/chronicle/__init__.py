"""Copies of files from before tools changed them, and taking changes back."""
