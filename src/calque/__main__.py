"""`python -m calque` and `calque`: the command line, which can be stopped from the first import on."""

from calque.stopping import stoppable


def main() -> None:
    """Run the command line."""
    with stoppable():
        from calque.cli import main as run

        run()


if __name__ == "__main__":
    main()
