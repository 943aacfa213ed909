"""Types that all packages share: ids, messages, events, ports, time, errors. Standard library only."""
