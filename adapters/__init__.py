"""CHANNELS: translate between one platform and the shared vocabulary, nothing else."""
