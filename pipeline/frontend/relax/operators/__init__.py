"""Convert single operators that TVM's importer reads wrongly, or not at all."""
