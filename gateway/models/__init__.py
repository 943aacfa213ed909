"""The model files that Parlour runs with: what they are, where they come from, whether they are whole."""
