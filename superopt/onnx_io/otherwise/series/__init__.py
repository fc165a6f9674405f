"""What a model computes of a series step after step, and need not: of all steps at once, or by other operators."""
