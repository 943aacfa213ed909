"""Fake platform servers: real HTTP and sockets on loopback, the platforms' real rules, scripted faults."""
