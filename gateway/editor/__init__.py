"""The page's workflow editor: who may edit, the saved documents, and the runs that are begun from it."""
