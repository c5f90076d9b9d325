"""Turn canonical ONNX into a Relax graph, and trace kernels to ONNX nodes: `to_relax`, `provenance`."""
