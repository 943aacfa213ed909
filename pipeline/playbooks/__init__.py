"""Playbooks: values, checks, the progress of a run, and the graph of one."""
