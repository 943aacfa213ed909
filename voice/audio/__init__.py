"""Decode, detect voice and cut, in a sandboxed process."""
