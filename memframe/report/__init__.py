"""The report: findings as one self-contained page, and as a few lines for a notebook."""

from memframe.report.brief import brief_html
from memframe.report.page import page_html

__all__ = ["brief_html", "page_html"]
