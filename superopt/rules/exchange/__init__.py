"""Rules in the formats of other tools: JSON, TASO's protobuf, egg's expressions, onnxscript's rewriter."""
