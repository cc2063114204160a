"""Text for terminals, without what would steer them."""


def printable(text: str) -> str:
    """Text that cannot steer a terminal: file names and models may say anything."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def on_one_line(text: str) -> str:
    """The same, with spaces for line breaks."""
    return " ".join(printable(text).split())
