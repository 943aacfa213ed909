"""The shield: what it finds in actions and in what tools return."""
