"""The conversation before the message: what of it the model is shown, and how it is kept small."""
