"""Loops: what their turns compute alike, or each of its own row, computed apart from them."""
