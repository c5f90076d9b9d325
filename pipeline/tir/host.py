"""Define the target graphs are lowered for. Device details matter only when objects are built."""

HOST = {"kind": "llvm"}
