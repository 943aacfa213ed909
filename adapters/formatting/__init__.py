"""Render Markdown per channel: one tree, one renderer per channel. No channel's SDK and no network."""
