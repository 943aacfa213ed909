"""The durable record: one set of ports, one conformance suite, one folder per implementation."""
