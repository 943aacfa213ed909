"""Keep the memory in order: delete what is old, and embed what is new."""
