"""``longtake ask``: questions about a video or a stream, answered by any frozen video-language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Policy = Literal["statekv", "sink-recency", "recency", "random", "full"]


def ask(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A file, URL, webcam:0, folder of images, or - for standard input.")
    ],
    questions: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="Each is answered for itself, unless --follow-up is given.")
    ],
    model: Annotated[
        str | None, typer.Option(help="A bundled name, a folder or a hub id.  [default: toybox-vlm, or the state's]")
    ] = None,
    choice: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Choose one of these; give two or more.")
    ] = None,
    choose_by: Annotated[
        Literal["likelihood", "generation"], typer.Option(help="The likeliest choice, or the one the model names.")
    ] = "likelihood",
    follow_up: Annotated[
        bool, typer.Option("--follow-up", help="Each question is a further turn of one conversation.")
    ] = False,
    at: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Answer as of this moment of the video, not of its end.")
    ] = None,
    policy: Annotated[Policy | None, typer.Option(help="Which tokens go on from frame to frame.")] = None,
    select: Annotated[
        Literal["kv-head", "layer"] | None, typer.Option(help="statekv: one selection per KV head, or per layer.")
    ] = None,
    sinks: Annotated[int | None, typer.Option(metavar="N", help="statekv: first tokens always kept.")] = None,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Tokens carried per layer and KV head.")] = None,
    horizon: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long the stream may become; fixed before it starts.")
    ] = None,
    fps: Annotated[float | None, typer.Option(metavar="F", help="Frames taken per second.")] = None,
    height: Annotated[int | None, typer.Option(metavar="PIXELS", help="Of frames, for the model.")] = None,
    width: Annotated[int | None, typer.Option(metavar="PIXELS", help="Likewise.")] = None,
    max_new_tokens: Annotated[int | None, typer.Option(metavar="N", help="Longest answer.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0: always the likeliest word.  [default: 0]")] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Sample among the K likeliest.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="Sample among those that make up P.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of sampling.  [default: 0]")] = None,
    stop: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="End an answer before this text.")] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Read at most so much now; with --resume, 0 reads nothing.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="STATE", help="Keep a snapshot here, good to go on from at any moment.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="STATE", help="Go on from a snapshot; give the same source again.")
    ] = None,
    on_lag: Annotated[
        Literal["wait", "drop", "stride"], typer.Option(help="When a live source is faster than the model.")
    ] = "wait",
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Longest wait for a sign of life from the source.")
    ] = 10.0,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per question instead of text.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")] = False,
) -> None:
    """Answer questions about a video or a stream, from a frozen video-language model.

    The source is read once, at constant cost per frame, then every question is answered. A live source is read until
    --seconds, --at or Ctrl-C, and then answered about.
    """
    from longtake.cli.asking import Job, run

    config = {"policy": policy, "select": select, "sinks": sinks, "budget": budget, "fps": fps}
    config |= {"height": height, "width": width, "horizon_seconds": horizon}
    sampling = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    sampling |= {"seed": seed, "stop": tuple(stop) if stop else None}
    job = Job(
        source=source,
        questions=tuple(questions),
        model=model,
        options={key: value for key, value in config.items() if value is not None},
        sampling={key: value for key, value in sampling.items() if value is not None},
        choices=tuple(choice or ()),
        choose_by=choose_by,
        follow_up=follow_up,
        at=at,
        seconds=seconds,
        save=save,
        resume=resume,
        on_lag=on_lag,
        timeout_seconds=timeout,
        trust_remote_code=trust_remote_code,
        as_json=as_json,
        quiet=quiet,
    )
    raise typer.Exit(run(job))
