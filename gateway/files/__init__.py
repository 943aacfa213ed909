"""Store the files of conversations."""
