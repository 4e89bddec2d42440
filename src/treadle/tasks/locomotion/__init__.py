"""Locomotion towards a far target, shared by the ant and the humanoid."""
