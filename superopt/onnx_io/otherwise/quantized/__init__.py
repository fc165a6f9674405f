"""Values of 8 bits, written so that runtimes have fast kernels for what is computed with them.

What is quantized to is a matter of the model: scales and steps stay those that it has. Which integers stand for these,
and whether a runtime computes with integers or with the numbers that they stand for, is not.
"""
