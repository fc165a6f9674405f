"""ONNX models in and out: the only package that imports onnx, onnx_ir, and onnxruntime for single nodes."""
