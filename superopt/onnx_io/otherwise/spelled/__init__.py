"""Activations that writers of models spell in steps, as the one operator that runtimes compute with a convolution."""
