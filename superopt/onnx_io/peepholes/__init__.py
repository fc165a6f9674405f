"""How terms are written: over which others, so that ONNX's own broadcasting, bias and n-ary forms are used."""
