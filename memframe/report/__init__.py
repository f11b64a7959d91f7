"""Show the findings of an audit as one self-contained page, and as a few lines for a notebook."""
