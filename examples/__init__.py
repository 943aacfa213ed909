"""Small working programs around Parlour. Not part of the distribution; each one is run by a test."""
