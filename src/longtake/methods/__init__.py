"""The three methods: each joins vision, state and language its own way."""
