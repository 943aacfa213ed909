"""The crisis gate: assess a person's messages, and answer one that tells of danger in place of the agent."""
