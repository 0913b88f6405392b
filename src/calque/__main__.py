"""`python -m calque` is the command line."""

from calque.cli import main

main()
