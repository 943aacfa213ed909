"""Generate texts for the crisis gate's linear model and train it."""
