"""The import name of what Parlour publishes for the authors of plug-ins."""
