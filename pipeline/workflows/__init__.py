"""Workflow documents: their values and checks, and the graph and the record of a run."""
