"""Rewrite rules: the value, its text, matching and building."""
