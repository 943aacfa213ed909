"""Remove secrets from text that is shown, stored or logged. Not here: who may read which text."""
