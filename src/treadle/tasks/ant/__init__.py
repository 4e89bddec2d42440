"""The ant tasks."""
