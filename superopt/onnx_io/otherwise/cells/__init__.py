"""Cells of recurrent networks that a model writes out step by step, as one node that computes all of them.

Scripts call a cell in a loop, converters unroll layers, and exporters write out each step: ten nodes and more, each of
which takes as long as it takes to start.
"""

from superopt.onnx_io.otherwise.cells.written import cells

__all__ = ["cells"]
