"""`parlour init`: ask for channels, tokens and a model, test them, and write parlour.toml and the secrets."""
