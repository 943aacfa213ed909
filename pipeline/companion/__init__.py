"""The companion agent's decisions and texts: which mode answers, the guided exercises, and each mode's
prompt."""
