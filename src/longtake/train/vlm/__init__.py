"""A small video VLM of Qwen3-VL's own classes, trained from nothing on Toybox: what ``ask`` is measured with."""
