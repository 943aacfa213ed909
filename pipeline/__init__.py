"""The message pipeline that all channels share. Depends on no channel, server or database."""
