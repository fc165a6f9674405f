"""Small networks of one make that stand side by side, as heads, experts and ensembles do: computed at once."""
