"""Language models: one port; clients for HTTP endpoints, litellm and the embedded server; a scripted fake."""
