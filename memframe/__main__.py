"""`python -m memframe`: the same as the `memframe` command."""

from memframe.cli import main

main()
