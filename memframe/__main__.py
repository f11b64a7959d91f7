"""`python -m memframe`: the same as the `memframe` command."""

import sys


def start() -> None:
    """Run the command. Ctrl-C ends it quietly while it is still loading, too."""
    try:
        from memframe.cli import main  # noqa: PLC0415 - importing takes a while, in which Ctrl-C may be pressed
    except KeyboardInterrupt:
        sys.exit("Aborted!")  # the word that click prints
    main()


if __name__ == "__main__":
    start()
