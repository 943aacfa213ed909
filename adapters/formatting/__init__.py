"""Markdown as each channel shows it: one tree, one renderer per channel. No channel's SDK and no network."""
