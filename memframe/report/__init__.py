"""The report: findings as one self-contained page, and as a few lines for a notebook."""
