"""Which identities are one person, and how they become one."""
