"""Channels: translate between one platform and the shared types, nothing else."""
