"""Tier 1: rules, disguises, the linear model and its training."""
