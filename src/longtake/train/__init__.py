"""Loops, losses and recipes: how the bundled weights are made."""
