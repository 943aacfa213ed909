"""Read pictures and documents of strangers, each in a sandboxed process that ends with it."""
