"""``longtake ask``: questions about a video or a stream, answered by any frozen video-language model."""

from __future__ import annotations

from typing import Any

import typer

from longtake.cli import ask_options as options


def ask(
    source: options.Source,
    questions: options.Questions,
    model: options.Model = None,
    choice: options.Choice = None,
    choose_by: options.ChooseBy = None,
    blind: options.Blind = False,
    follow_up: options.FollowUp = False,
    at: options.At = None,
    policy: options.Policy = None,
    select: options.Select = None,
    sinks: options.Sinks = None,
    budget: options.Budget = None,
    horizon: options.Horizon = None,
    fps: options.Fps = None,
    height: options.Height = None,
    width: options.Width = None,
    settings: options.Settings = None,
    max_new_tokens: options.MaxNewTokens = None,
    temperature: options.Temperature = None,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    stop: options.Stop = None,
    seconds: options.Seconds = None,
    save: options.Save = None,
    resume: options.Resume = None,
    on_lag: options.OnLag = "wait",
    timeout: options.Timeout = 10.0,
    trust_remote_code: options.RemoteCode = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Answer questions about a video or a stream, from a frozen video-language model.

    The source is read once, at constant cost per frame, then every question is answered. A live source is read until
    --seconds, --at or Ctrl-C, and then answered about. An MC-ViT model takes the --choice whose text is nearest.
    """
    config = {"policy": policy, "select": select, "sinks": sinks, "budget": budget, "horizon_seconds": horizon}
    config |= {"fps": fps, "height": height, "width": width}
    sampling = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p}
    sampling |= {"seed": seed, "stop": tuple(stop) if stop else None}
    sampling = _given(sampling)
    _check_usage(sampling, choice=choice, choose_by=choose_by)
    if blind and (save or resume):
        raise typer.BadParameter("--blind reads no video; leave --save and --resume out")
    from longtake.cli.ask_job import Job, check
    from longtake.config import apply_overrides

    overrides, config = apply_overrides({}, settings or []), _given(config)
    if twice := sorted(overrides.keys() & config.keys()):
        raise typer.BadParameter(f"{twice[0]} is given by --set and by an option of its own; give it once")
    job = Job(
        source=source,
        questions=tuple(questions),
        model=model,
        options=overrides | config,
        sampling=sampling,
        choices=tuple(choice or ()),
        choose_by=choose_by or "likelihood",
        blind=blind,
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
    check(job)
    from longtake.cli.asking import run  # loads torch and transformers: only for what can be answered

    raise typer.Exit(run(job))


def _check_usage(sampling: dict[str, Any], *, choice: list[str] | None, choose_by: str | None) -> None:
    """Options that would change nothing, known before anything heavy is loaded."""
    if choose_by and not choice:
        raise typer.BadParameter("--choose-by goes with --choice; give two or more of those, or leave it out")
    names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
    if names and choice and choose_by != "generation":
        raise typer.BadParameter(f"{names}: a choice by likelihood says no words; add --choose-by generation")
    idle = [f"--{name.replace('_', '-')}" for name in ("top_k", "top_p", "seed") if name in sampling]
    if idle and sampling.get("temperature", 0) == 0:
        raise typer.BadParameter(f"{', '.join(idle)}: nothing is sampled at temperature 0; give --temperature too")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
