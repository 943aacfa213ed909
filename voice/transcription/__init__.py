"""Recordings to text: worker pool, engines, caches."""
