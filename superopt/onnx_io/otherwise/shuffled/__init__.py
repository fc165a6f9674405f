"""Channels that are shuffled between convolutions: each convolution reads those that it needs, in any order."""
