"""Reaching a commanded pose with an arm."""
