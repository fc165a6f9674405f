"""Whether a candidate is the answer: the same by comparison, and better by measurement."""
