"""Places of values along an axis that nobody reads, and what convolutions compute there."""
