"""Searching a model for the fastest equivalent graph, and accepting it by measurement."""
