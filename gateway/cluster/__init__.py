"""The bus: signals between the parts of a gateway that could be several processes."""
