"""Attention with constant masks: computed of the queries and keys that these do not hide from each other."""
