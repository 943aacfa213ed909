"""Speech processing: audio bytes in, utterances out. Imports no other package of this project."""
