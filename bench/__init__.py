"""Benches: what the gateway costs and promises, measured on real processes. Not tests: they judge nothing."""
