"""`python -m memframe`: the same as the `memframe` command."""

import sys


def start() -> None:
    """Run the command. Ctrl-C ends it quietly while it is still loading, too."""
    try:
        from memframe.cli import main  # noqa: PLC0415 - it takes a while, in which somebody may press it
    except KeyboardInterrupt:
        sys.exit("Aborted!")  # as click ends it later
    main()


if __name__ == "__main__":
    start()
