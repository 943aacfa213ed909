"""The vocabulary every room shares: ids, messages, events, ports, time, errors. Standard library only."""
