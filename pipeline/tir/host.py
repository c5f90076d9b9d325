"""The target graphs are lowered for. What is special about a device matters only when its objects are built."""

HOST = {"kind": "llvm"}
