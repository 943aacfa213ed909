"""Which agent answers where: the agents by name, and the routes to them."""
