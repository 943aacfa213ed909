"""Ask questions that wait for a person, and match answers to them."""
