"""Decode audio, detect voice and split at pauses, in a sandboxed process."""
