"""A process to be killed: takes in some segments, saves after each, says what it said, then waits for its end."""

from __future__ import annotations

import json
import sys
import time

import torch
from tests.contract.models import CASES, make_segments
from tests.contract.test_stream_models import take_in

from longtake.state.tree import save_state


def main() -> None:
    torch.set_num_threads(1)
    name, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    model = CASES[name].make()
    state, said = model.init_state(), []
    for number, segment in enumerate(make_segments(model.segment_spec, 6)[:count], 1):
        state, more = take_in(model, state, [segment])
        said += more
        save_state(path, state, fingerprint=model.fingerprint, extra={"segments": number})
    print(json.dumps(said), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
