"""Connect channels to voice: voice notes, live sessions, reading aloud."""
