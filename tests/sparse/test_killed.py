"""A training whose process is killed, wherever it is, goes on in the next one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests import ROOT
from tests.support.sparse_training import NAME
from workers.sparse import storage

STEPS = 400


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.sparse_training", str(folder), str(STEPS)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def steps_until(process: subprocess.Popen[str], last: int) -> list[int]:
    """The steps that it says, up to this one or its end."""
    said: list[int] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(int(line))
        if said[-1] >= last:
            break
    return said


@pytest.mark.more
def test_one_that_is_killed_again_and_again_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    with start(whole) as process:
        assert steps_until(process, STEPS)[0] == 0
    draw, reached = random.Random(5), 0
    for last in (STEPS // 5, STEPS // 2, STEPS - 20):
        with start(broken) as process:
            said = steps_until(process, last)
            time.sleep(draw.uniform(0, 0.02))  # so that it dies now in a step, now while a checkpoint is written
            process.kill()
        # What it says of a step comes before the step, so the one that was under way may be lost
        assert reached - 1 <= said[0] <= last
        reached = said[-1]
    with start(broken) as process:
        assert reached - 1 <= steps_until(process, STEPS)[0]
    assert process.returncode == 0
    one, other = (storage.load_autoencoder(folder, NAME)[0].state_dict() for folder in (whole, broken))
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)
    assert storage.list_cards(whole) == storage.list_cards(broken)
    assert sorted(each.suffix for each in (broken / "sparse").iterdir()) == [".lock", ".safetensors"]
