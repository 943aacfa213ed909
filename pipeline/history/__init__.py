"""The conversation before the message: which part the model is shown, and how it is kept small."""
