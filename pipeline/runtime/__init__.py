"""One turn's surroundings: the journal it writes to and what its nodes are given."""
