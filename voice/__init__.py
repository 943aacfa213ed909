"""EARS: audio bytes in, utterances out. Needs no other package of this project."""
