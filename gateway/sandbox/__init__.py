"""Run commands in a sandbox of kernel namespaces."""
