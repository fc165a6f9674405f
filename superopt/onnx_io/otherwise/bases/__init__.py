"""Layers of functions of each number, as Kolmogorov-Arnold networks have them (Liu et al. 2024): splines, polynomials,
waves or bells on a grid, of which each output sums up all with weights of its own.

Scripts spell the functions out along one more axis behind that of the numbers. What is alike for all numbers of a grid
is computed faster where these lie behind each other, and of splines and polynomials there are shorter ways to write.
"""

from superopt.onnx_io.otherwise.bases.written import bases

__all__ = ["bases"]
