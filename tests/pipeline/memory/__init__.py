"""Tests of pipeline.memory."""
