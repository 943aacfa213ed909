"""Workflow documents: values, the check of a whole document, and the graph and the record of a run (seed 3)."""
