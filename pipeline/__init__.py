"""MIND: the shared message pipeline. Knows no channel, no server and no database."""
