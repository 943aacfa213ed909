"""Who may speak, how often, and at what cost."""
