"""``python -m longtake.cli``: the command line where the script is not on the path."""

from longtake.cli.entry import main

main()
