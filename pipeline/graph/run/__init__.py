"""A run's state and its log: records in, state out. No node is called here."""
