"""Show the findings of an audit as one self-contained page, and as a few lines for a notebook.

`words` names checks, severities and proposals, `verdict` counts findings and sums them up, `overview` shows that in a
notebook and `page` with all findings, which loads matplotlib.
"""
