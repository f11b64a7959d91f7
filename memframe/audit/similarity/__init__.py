"""Similarity: which memories of one person are worth comparing, what two of them differ in, and which are the same."""
