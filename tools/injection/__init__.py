"""The training of the shield's linear model for injected instructions, on texts that it generates."""
