"""Objectives: what a search lessens, and by which of the graphs found a piece is replaced."""
