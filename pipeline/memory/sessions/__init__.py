"""What becomes of a session's memory when it ends: held candidates are written or dropped, an arc is made."""
