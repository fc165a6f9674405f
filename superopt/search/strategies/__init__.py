"""Strategies: in which order graphs are rewritten, and when that ends."""
