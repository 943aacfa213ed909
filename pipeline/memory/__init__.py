"""What is remembered of a person or a room between conversations: values, rules of writing, recall, ports."""
