"""Show the findings of an audit as one self-contained page, and as a few lines for a notebook.

`words` names checks, severities and proposals; `verdict` counts findings and sums them up; `overview` shows the result
in a notebook; `page` shows it with all findings, and loads matplotlib.
"""
