"""Text: readers, words, cleaning, frequencies, treebanks, dictionaries. No torch here."""
