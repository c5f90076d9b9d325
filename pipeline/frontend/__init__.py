"""Import models: source, canonical ONNX, refusals, and the Relax graph.

Public faces: `imported_model.load`, `imported_model.import_onnx`, `ImportedModel`.
"""
