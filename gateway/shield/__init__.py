"""The shield's services: its audit in the store, and the check of that audit."""
