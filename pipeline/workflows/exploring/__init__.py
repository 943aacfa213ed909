"""Explore what a workflow document can do, in every order, before it runs."""
