"""Questions that wait for a person, and matching an answer to one."""
