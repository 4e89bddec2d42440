"""The humanoid tasks."""
