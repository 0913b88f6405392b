"""Links: which word of a sentence translates which word of the other."""
