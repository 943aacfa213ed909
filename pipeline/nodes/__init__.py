"""Kinds of nodes for graph documents, and the graphs that documents describe: running one takes no code."""
