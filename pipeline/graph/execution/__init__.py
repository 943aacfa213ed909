"""Call nodes and choose edges."""
