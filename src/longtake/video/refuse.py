"""Why a source cannot be read, in one line: what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path

from av.container import InputContainer
from av.error import ConnectionRefusedError as AvConnectionRefusedError
from av.error import ExitError, HTTPError, InvalidDataError

from longtake.errors import SourceError
from longtake.video.address import Address
from longtake.video.mp4 import Mp4Facts, read_mp4_facts

HEAD_BYTES = 4096
PAGE_STARTS = (b"<!doctype html", b"<html", b"<?xml", b"<head", b"<body")


def check_file(address: Address) -> Mp4Facts | None:
    """Refuse a file that cannot hold readable video, before FFmpeg sees it; facts about it if it is an MP4.

    Raises:
        SourceError: It is empty, not permitted, or encrypted.
    """
    path = file_path(address)
    if path is None:
        return None
    try:
        if path.stat().st_size == 0:
            raise SourceError(f"{address.text}: file is empty (0 bytes); copy or record it again")
        facts = read_mp4_facts(path)
    except SourceError:
        raise
    except PermissionError as error:
        raise SourceError(f"{address.text}: no permission to read this file; change its mode or owner") from error
    except OSError as error:
        raise SourceError(f"{address.text}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    if facts is not None and facts.is_encrypted:
        raise encrypted(address)
    return facts


def encrypted(address: Address) -> SourceError:
    """The error for protected video."""
    return SourceError(f"{address.text}: stream is encrypted (CENC); longtake needs an unprotected copy")


def file_path(address: Address) -> Path | None:
    """The local regular file behind an address, if there is one."""
    return Path(address.target.removeprefix("file:")) if address.kind == "file" else None


def explain_open_failure(address: Address, error: Exception, timeout_seconds: float) -> SourceError:
    """The error for a source that FFmpeg did not open."""
    name = address.text
    if isinstance(error, ExitError):
        return SourceError(
            f"{name}: no answer within {timeout_seconds:g} s; check that the source is up or give it a longer --timeout"
        )
    if isinstance(error, AvConnectionRefusedError):
        return SourceError(f"{name}: connection refused; nothing listens there")
    if isinstance(error, HTTPError):
        return SourceError(f"{name}: the server refused ({_reason(error)}); check the address")
    if isinstance(error, InvalidDataError):
        return SourceError(f"{name}: {_explain_invalid(address)}")
    return SourceError(f"{name}: cannot be opened ({_reason(error)}); check the source")


def _reason(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join((reason[:1].lower() + reason[1:]).split())


def _explain_invalid(address: Address) -> str:
    path = file_path(address)
    if path is None:
        return "empty, not a video, or cut off before its index (the data is of no known format); check what sends it"
    facts = read_mp4_facts(path)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if facts is not None and not facts.has_index:
        return "cannot open: index (moov) missing, file is incomplete; copy or record it again"
    if facts is not None:
        return "cannot open: the index (moov) is damaged; copy or record it again"
    if head.lstrip().lower().startswith(PAGE_STARTS):
        return "not a video file (it is a web page); fetch the video itself"
    return "not a video file (the data is of no known format); expected video such as mp4, mkv, webm, ts or avi"


def explain_no_video(address: Address, container: InputContainer) -> SourceError:
    """The error for a container without a moving picture."""
    streams = container.streams
    if streams.video:
        return SourceError(
            f"{address.text}: no video stream (only a cover picture); give a source with moving pictures"
        )
    groups = (("audio", streams.audio), ("subtitle", streams.subtitles), ("data", streams.data))
    found = [f"{len(group)} {kind} stream{'s' if len(group) > 1 else ''}" for kind, group in groups if group]
    return SourceError(
        f"{address.text}: no video stream ({', '.join(found) or 'no streams at all'}); "
        "give a source with moving pictures"
    )
