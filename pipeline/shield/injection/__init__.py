"""Detection of injected instructions in actions and in what tools return: tier 1 of the shield."""
