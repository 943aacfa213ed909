"""The agent's tools, and the gate that checks every call of one."""
