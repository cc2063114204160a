"""The options of ``longtake ask``, as annotations: what each is called, takes and says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from typer import Argument, Option

Source: TypeAlias = Annotated[
    str, Argument(metavar="SOURCE", help="A file, URL, webcam:0, folder of images, or - for standard input.")
]
Questions: TypeAlias = Annotated[
    list[str], Argument(metavar="QUESTION", help="Each is answered for itself, unless --follow-up is given.")
]
Model: TypeAlias = Annotated[
    str | None, Option(help="A bundled name, a folder or a hub id.  [default: toybox-vlm, or the state's]")
]
RemoteCode: TypeAlias = Annotated[bool, Option("--trust-remote-code", help="Run code that comes with the model.")]

# what is asked
Choice: TypeAlias = Annotated[
    list[str] | None, Option(metavar="TEXT", help="Choose one of these; give two or more, each with --choice.")
]
ChooseBy: TypeAlias = Annotated[
    Literal["likelihood", "generation"] | None,
    Option(help="The likeliest choice, or the one the model names.  [default: likelihood]"),
]
Blind: TypeAlias = Annotated[
    bool, Option("--blind", help="MC-ViT: read no video; choose from the words alone, to tell what seeing adds.")
]
FollowUp: TypeAlias = Annotated[
    bool, Option("--follow-up", help="Each question is a further turn of one conversation.")
]
At: TypeAlias = Annotated[
    float | None, Option(metavar="SECONDS", help="Answer as of this moment of the video.  [default: its end]")
]

# how the video is taken in; what is not said is the model's own (its longtake.json), else StateKVConfig's
Policy: TypeAlias = Annotated[
    Literal["statekv", "sink-recency", "recency", "random", "full"] | None,
    Option(help="Which tokens go on from frame to frame.  [default: the model's, else statekv]"),
]
Select: TypeAlias = Annotated[
    Literal["kv-head", "layer"] | None,
    Option(help="statekv: one selection per KV head, or per layer.  [default: the model's, else kv-head]"),
]
Sinks: TypeAlias = Annotated[
    int | None, Option(metavar="N", help="statekv: first tokens always kept.  [default: the model's, else 0]")
]
Budget: TypeAlias = Annotated[
    int | None, Option(metavar="N", help="Tokens carried per layer and KV head.  [default: the model's, else 4096]")
]
Horizon: TypeAlias = Annotated[
    float | None,
    Option(
        metavar="SECONDS",
        help="How long the stream may become; fixed before it starts.  [default: what the model was trained for]",
    ),
]
Fps: TypeAlias = Annotated[
    float | None, Option(metavar="F", help="Frames taken per second.  [default: the model's, else 1]")
]
Height: TypeAlias = Annotated[
    int | None, Option(metavar="PIXELS", help="Of frames, for the model.  [default: the model's, else its family's]")
]
Width: TypeAlias = Annotated[int | None, Option(metavar="PIXELS", help="Likewise.")]
Settings: TypeAlias = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Any setting of docs/ask.md: detailed_bytes=1000000000."),
]

# how words are chosen
MaxNewTokens: TypeAlias = Annotated[
    int | None, Option(metavar="N", help="Longest answer, in tokens.  [default: the model's, else 256]")
]
Temperature: TypeAlias = Annotated[
    float | None, Option(metavar="T", help="0: always the likeliest word.  [default: 0]")
]
TopK: TypeAlias = Annotated[int | None, Option(metavar="K", help="Sample among the K likeliest; 0: all.  [default: 0]")]
TopP: TypeAlias = Annotated[float | None, Option(metavar="P", help="Sample among those that make up P.  [default: 1]")]
Seed: TypeAlias = Annotated[int | None, Option(metavar="N", help="Of sampling.  [default: 0]")]
Stop: TypeAlias = Annotated[list[str] | None, Option(metavar="TEXT", help="End an answer before this text.")]

# how the source is read
Seconds: TypeAlias = Annotated[
    float | None,
    Option(metavar="SECONDS", help="Read at most so much now; with --resume, 0 reads nothing.  [default: all]"),
]
Save: TypeAlias = Annotated[
    Path | None, Option(metavar="STATE", help="Keep a snapshot here, good to go on from at any moment.")
]
Resume: TypeAlias = Annotated[
    Path | None, Option(metavar="STATE", help="Go on from a snapshot; give the same source again.")
]
OnLag: TypeAlias = Annotated[
    Literal["wait", "drop", "stride"], Option(help="When a live source is faster than the model.")
]
Timeout: TypeAlias = Annotated[
    float, Option(min=0.1, max=86400.0, metavar="SECONDS", help="Longest wait for a sign of life from the source.")
]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="One JSON object per question instead of text.")]
Quiet: TypeAlias = Annotated[bool, Option("--quiet", "-q", help="No progress on stderr.")]
