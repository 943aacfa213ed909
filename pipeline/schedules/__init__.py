"""Times that repeat: their value, the words that name them, and the words that show them."""
