"""Search pass sequences for the least ram: strategies over graph states, then refinement of the finalists.

Public faces: `find_sequence.find_sequence` (by settings), `search.search` (one search), `settings.SearchSettings`.
"""
