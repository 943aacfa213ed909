"""Durable storage: one set of ports, one conformance suite, one folder per implementation."""
