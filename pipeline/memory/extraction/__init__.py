"""Find candidates in what a person says, by rules and by a model; the write policy decides about them."""
