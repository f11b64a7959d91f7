"""Similarity: candidates for a comparison of texts, the differences of two texts, and clusters of near-duplicates."""
