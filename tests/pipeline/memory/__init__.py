"""Tests of what is written into the memory, and when."""
