"""The agent: builds the prompt, streams the model, and says how far it got. It cannot execute anything."""
