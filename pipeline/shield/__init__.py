"""The shield: judges every action that a model proposes. Runs no tool."""
