"""Download and verify the model files that Parlour uses."""
