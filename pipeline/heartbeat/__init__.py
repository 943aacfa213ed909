"""The heartbeat: its graph, its prompts, and what an agent says at the end of a cycle."""
