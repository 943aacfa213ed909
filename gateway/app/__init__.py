"""Composition root and lifecycle: the only folder that names implementations."""
