"""Pretrained video-language models: the only place that touches transformers' caches and attention interface."""
