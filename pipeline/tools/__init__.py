"""What the agent may use, and the gate before it."""
