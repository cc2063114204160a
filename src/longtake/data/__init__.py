"""Data: the procedural Toybox world, annotation formats and sampling for training."""
