"""The environment of one turn: the ports of its host, its journal, and the context of its nodes."""
