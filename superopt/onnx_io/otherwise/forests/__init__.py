"""Forests of soft decisions (Kontschieder et al. 2015): what their paths are, told by the products of chances that are
computed in places, and how all trees are computed at once.
"""

from superopt.onnx_io.otherwise.forests.written import forests

__all__ = ["forests"]
