"""Language models: one port, the litellm door, the embedded local server and the shipped fake."""
