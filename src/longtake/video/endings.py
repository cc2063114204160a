"""Whether a file ends as its format says it should; some demuxers meet a cut or a hole in silence."""

from __future__ import annotations

from pathlib import Path

TAIL_BYTES = 65_536
MAX_UNREAD_SHARE = 0.1
"""Of the file, after the last packet: more is not an index or padding."""
PACKETS_TO_THE_END = ("flv", "mpegts", "mpeg", "ogg", "asf", "ivf")
"""Formats whose packets go on to the end of the file."""


def ending_fault(path: Path, format_name: str, last_packet_end: int) -> str | None:
    """What is wrong with the end of a file of one stream, in words; None where all is well or nothing is known."""
    size = path.stat().st_size
    if format_name.startswith(PACKETS_TO_THE_END) and 0 < last_packet_end < size * (1 - MAX_UNREAD_SHARE):
        return f"the last {100 * (1 - last_packet_end / size):.0f} % of the file cannot be read: damaged, or not video"
    if format_name == "gif" and not tail_of(path, size).rstrip(b"\0").endswith(b"\x3b"):
        return "the end mark is missing: the file is cut off or damaged"
    if format_name == "ogg" and not has_last_page(tail_of(path, size)):
        return "the last page is missing: the file is cut off or damaged"
    return None


def tail_of(path: Path, size: int) -> bytes:
    """Last bytes of a file, at most ``TAIL_BYTES``."""
    with path.open("rb") as file:
        file.seek(max(0, size - TAIL_BYTES))
        return file.read()


def has_last_page(tail: bytes) -> bool:
    """An Ogg page in the tail is marked as the last of its stream."""
    place = tail.find(b"OggS")
    while 0 <= place < len(tail) - 5:
        if tail[place + 5] & 4:
            return True
        place = tail.find(b"OggS", place + 4)
    return False
