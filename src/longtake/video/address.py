"""Where a source is: from what a person typed to what FFmpeg opens."""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from longtake.errors import SourceError

Kind: TypeAlias = Literal["file", "pipe", "folder", "http", "stream", "device"]

LIVE_SCHEMES = frozenset({"rtsp", "rtsps", "rtmp", "rtmps", "rtmpt", "udp", "rtp", "srt", "tcp", "tls", "sdp", "mmsh"})
HTTP_SCHEMES = frozenset({"http", "https"})
MAX_RECONNECT_SECONDS = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One source, resolved but not opened."""

    text: str
    """As the person wrote it, without user name and password; used in messages."""
    kind: Kind
    target: str
    """What FFmpeg opens, or the folder."""
    is_live: bool
    format_name: str | None = None
    """Demuxer to force; None lets FFmpeg look at the bytes."""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_network(self) -> bool:
        """Reads may wait for another machine."""
        return self.kind in ("http", "stream")


def parse_address(source: str | os.PathLike[str], *, live: bool | None = None) -> Address:
    """Resolve a file, ``http(s)://``, ``rtsp://`` (or udp, tcp, rtmp, srt), device, ``webcam:N``, folder or ``-``.

    Args:
        source: What the person wrote.
        live: Treat as live or not, against the default of the kind (HTTP is live only on request).

    Raises:
        SourceError: The scheme is unknown or the path does not exist.
    """
    text = os.fspath(source)
    if not text:
        raise SourceError("source is empty, expected a file, a URL, webcam:N, a folder of images or -")
    if text == "-":
        return _stdin(text, live=bool(live))
    webcam = re.fullmatch(r"webcam:(\w[\w ./-]*)", text)
    if webcam:
        return _webcam(text, webcam[1], live=live is not False)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", text)
    if scheme and scheme[1].lower() != "file":
        return _url(text, scheme[1].lower(), live=live)
    return _path(text, Path(text.removeprefix("file://")), live=live)


def _stdin(text: str, *, live: bool) -> Address:
    try:
        mode = os.fstat(0).st_mode
    except OSError as error:
        raise SourceError("-: standard input is closed; pipe a video into it, or name a file") from error
    # FFmpeg's "fd:" can seek, which an MP4 with its index at the end needs; a real pipe cannot.
    target = "fd:" if stat.S_ISREG(mode) else "pipe:0"
    return Address(text=text, kind="pipe", target=target, is_live=live)


def _webcam(text: str, number: str, *, live: bool) -> Address:
    if sys.platform == "darwin":
        return Address(text=text, kind="device", target=number, format_name="avfoundation", is_live=live)
    if sys.platform == "win32":
        return Address(text=text, kind="device", target=f"video={number}", format_name="dshow", is_live=live)
    target = f"/dev/video{number}" if number.isdigit() else number
    if not Path(target).exists():
        raise SourceError(f"{text}: there is no {target}; connect a camera or give its device path")
    return Address(text=text, kind="device", target=target, format_name="video4linux2,v4l2", is_live=live)


def _url(url: str, scheme: str, *, live: bool | None) -> Address:
    text = re.sub(r"(?<=://)[^/@\s]*@", "", url)
    if scheme in HTTP_SCHEMES:
        options = {"reconnect": "1", "reconnect_delay_max": MAX_RECONNECT_SECONDS, "reconnect_max_retries": "3"}
        return Address(text=text, kind="http", target=url, is_live=bool(live), options={} if live else options)
    if scheme in LIVE_SCHEMES:
        # Over TCP no packet is lost; the default, UDP, gives grey pictures on a busy network.
        options = {"rtsp_transport": "tcp"} if scheme.startswith("rtsp") else {}
        return Address(text=text, kind="stream", target=url, is_live=live is not False, options=options)
    raise SourceError(
        f"{text}: {scheme}:// is not a known kind of source; expected http, https, rtsp, rtmp, srt, udp, tcp or a path"
    )


def _path(text: str, path: Path, *, live: bool | None) -> Address:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if path.is_symlink():
            raise SourceError(f"{text}: broken link, it points to {path.readlink()} which does not exist") from error
        raise SourceError(f"{text}: {_reason(error)}; check the path") from error
    except ValueError as error:  # a null byte
        raise SourceError(f"{text!r} cannot be a path: {error}") from error
    if stat.S_ISDIR(mode):
        return Address(text=text, kind="folder", target=str(path), is_live=False)
    if stat.S_ISCHR(mode):
        return Address(
            text=text, kind="device", target=str(path), format_name="video4linux2,v4l2", is_live=live is not False
        )
    kind: Kind = "pipe" if stat.S_ISFIFO(mode) else "file"
    # "file:" keeps FFmpeg from reading a colon in the name as a protocol.
    return Address(text=text, kind=kind, target=f"file:{path}", is_live=bool(live))


def _reason(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or "cannot be read").lower()
