"""Benchmarks of the gateway's cost and of its promises, on real processes. Not tests: nothing can fail."""
