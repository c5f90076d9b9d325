"""Write the pages of docs/ that follow from the code: the passes, beside those of Verma et al."""
