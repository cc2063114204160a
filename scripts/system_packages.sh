#!/usr/bin/env bash
# Installs what the tests want from Debian, if it is missing and we may: ffmpeg (odd videos, a real RTSP stream) and Java
# (METEOR). Never fails: what stays missing is skipped by the tests that need it, with the reason.
set -u

missing=()
command -v ffmpeg >/dev/null || missing+=(ffmpeg)
command -v java >/dev/null || missing+=(default-jre-headless)
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "longtake: not found: ${missing[*]}; the tests that need them will be skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
echo "longtake: installing ${missing[*]}" >&2
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null; then
    echo "longtake: could not install ${missing[*]}; the tests that need them will be skipped" >&2
fi
exit 0
