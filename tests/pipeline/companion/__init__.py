"""The crisis gate: its rules, its words, and the places of help."""
