"""Train the networks of toybox on drawn scenes; write their weights and, beside them, their figures.

    python -m workers.toybox.networks.train                          all, with the recipes below
    python -m workers.toybox.networks.train --only net --epochs 2    a quick one

Ctrl+C stops it; the same command continues after the last whole epoch with the same result. The Django command
`train_toybox` is this one under another name.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from workers.files import atomic_write
from workers.toybox.networks import examples
from workers.toybox.networks.evaluation import Metrics, evaluate_eyes, evaluate_net
from workers.toybox.networks.examples import Examples
from workers.toybox.networks.nets import DESCRIBER_FILE, EYES_FILE, NET_FILE, save_weights
from workers.toybox.networks.training_tasks import (
    TrainingRecipe,
    TrainingStage,
    TrainingTask,
    eyes_task,
    net_task,
    training_stages,
)
from workers.toybox.world import splits


@dataclass(frozen=True)
class Plan:
    """Everything that distinguishes one network's training from another's."""

    recipe: TrainingRecipe
    course: Callable[[TrainingRecipe], TrainingTask]
    figures: Callable[[Any, Examples, Examples], Metrics]
    target: Path


PLANS = {
    "net": Plan(TrainingRecipe(), net_task, evaluate_net, NET_FILE),
    "eyes": Plan(TrainingRecipe(epochs=3), eyes_task, evaluate_eyes, EYES_FILE),
    # Other weights and other scenes, so that the describer of images does not share the errors of the eyes
    "describer": Plan(TrainingRecipe(epochs=3, first=10_000, seed=1), eyes_task, evaluate_eyes, DESCRIBER_FILE),
}
HELD_OUT = {"mixed": 2_000, "single": 1_000}
"""Scenes of each held-out split for measuring figures."""


def train(name: str, plan: Plan, state: Path, held_out: dict[str, int] = HELD_OUT) -> Metrics:
    """Train the network of a plan, write weights and figures, and return the figures."""
    recipe = plan.recipe
    learnt = _examples("train", range(recipe.first, recipe.first + recipe.scenes), state, recipe)
    mixed, single = (_examples(split, range(held_out[split]), state, recipe) for split in ("mixed", "single"))
    # 1. Seeded before the network is built: its first weights are random too
    torch.manual_seed(recipe.seed)
    course = plan.course(recipe)
    # A checkpoint of another recipe, or of other pictures, is not continued
    fingerprint = sha256(f"{recipe} {splits.pictures_revision()}".encode()).hexdigest()[:12]
    checkpoint = state / "toybox" / f"toybox-{name}-{fingerprint}.checkpoint"
    # 2. Train, then measure on scenes that were not learnt
    train_network(course, training_stages(recipe, learnt), recipe, checkpoint)
    figures = plan.figures(course.network, mixed, single)
    figures["parameters"] = sum(parameter.numel() for parameter in course.network.parameters())
    # 3. The weights before the checkpoint goes: an interruption in between costs nothing
    save_weights(course.network, plan.target)
    record = {"recipe": asdict(recipe), "held_out_scenes": held_out, "figures": figures}
    plan.target.with_suffix(".json").write_text(json.dumps(record, indent=2) + "\n")
    checkpoint.unlink(missing_ok=True)
    return figures


def _examples(split: splits.Split, numbers: range, state: Path, recipe: TrainingRecipe) -> Examples:
    # `load` reports totals, tqdm wants differences
    with tqdm(total=len(numbers), desc=f"drawing {split} scenes", unit="scene") as bar:

        def show(_what: str, done: int, _total: int) -> None:
            bar.update(done - bar.n)

        return examples.load(split, numbers, state, recipe.threads, show)


def train_network(
    course: TrainingTask, lessons: Sequence[TrainingStage], recipe: TrainingRecipe, checkpoint: Path
) -> None:
    """Train the network of a course in place. Continues from `checkpoint` if there is one."""
    torch.set_num_threads(recipe.threads)
    course.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for number, lesson in enumerate(lessons):
        # A new optimizer for each stage: its rate and momentum start anew
        optimizer = torch.optim.AdamW(course.network.parameters(), lesson.rate, weight_decay=recipe.decay)
        steps = lesson.epochs * (len(lesson.learnt) // lesson.batch)
        # `max`: with fewer scenes than a batch there is no step, and the schedule refuses 0
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lesson.rate, max(1, steps), pct_start=0.2)
        keep = {"network": course.network, "optimizer": optimizer, "schedule": schedule}
        for epoch in range(_resume(checkpoint, keep, number), lesson.epochs):
            # By seed and epoch alone, so that a training that was stopped ends with the same weights
            rng = torch.Generator().manual_seed(recipe.seed * 1000 + epoch)
            title = f"{lesson.name}, epoch {epoch + 1} of {lesson.epochs}"
            order: Tensor = torch.randperm(len(lesson.learnt), generator=rng)
            course.network.train()
            # Without the last, incomplete batch: the schedule counts whole ones
            with tqdm(torch.split(order, lesson.batch)[: len(order) // lesson.batch], desc=title, unit="batch") as bar:
                for numbers in bar:
                    flipped = bool(torch.rand((), generator=rng) < 0.5)
                    pixels = torch.from_numpy(lesson.learnt.images[numbers.numpy()])
                    loss = course.loss(pixels.flip(2) if flipped else pixels, lesson, numbers, flipped)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    schedule.step()
                    # For instance to keep weights positive: see `TrainingTask.after_step`
                    course.after_step()
                    bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
            _save_checkpoint(checkpoint, keep, number, epoch + 1)
    course.network.eval()


def _resume(checkpoint: Path, keep: dict[str, Any], lesson: int) -> int:
    """Restore a checkpoint of this lesson, and return the epoch to continue with."""
    if not checkpoint.exists():
        return 0
    # `weights_only`: a checkpoint is data, and unpickling must not run code
    saved = torch.load(checkpoint, weights_only=True)
    if saved["lesson"] != lesson:
        # A later lesson was reached before, so this one is done
        return sys.maxsize if saved["lesson"] > lesson else 0
    for name, part in keep.items():
        part.load_state_dict(saved[name])
    return int(saved["epoch"])


def _save_checkpoint(checkpoint: Path, keep: dict[str, Any], lesson: int, epoch: int) -> None:
    states = {name: part.state_dict() for name, part in keep.items()}
    with atomic_write(checkpoint) as file:
        torch.save(states | {"lesson": lesson, "epoch": epoch}, file)


# --- the command --------------------------------------------------------------------------------------


def run(only: str | None, changes: dict[str, int | None], into: Path | None, state: Path) -> None:
    """Train what was asked for and print the figures. `changes` replace numbers of the recipes unless None."""
    given = {name: value for name, value in changes.items() if value is not None}
    for name in [only] if only else PLANS:
        plan = PLANS[name]
        plan = replace(plan, recipe=replace(plan.recipe, **given))
        if into:
            plan = replace(plan, target=into / plan.target.name)
        started = time.monotonic()
        figures = train(name, plan, state)
        print(f"toybox-{name}: {plan.target} after {time.monotonic() - started:.0f} s")
        for figure, value in figures.items():
            print(f"  {figure:32} {value:.4f}" if isinstance(value, float) else f"  {figure:32} {value}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Ctrl+C ends it with one sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m workers.toybox.networks.train", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", choices=sorted(PLANS), help="train this network alone")
    parser.add_argument("--into", type=Path, help="folder for weights and figures (default: the committed ones)")
    parser.add_argument("--scenes", type=int, help="training scenes (default: the recipe's)")
    parser.add_argument("--epochs", type=int, help="passes over the scenes (default: the recipe's)")
    parser.add_argument("--threads", type=int, help="processor cores to use (default: 2)")
    parser.add_argument(
        "--state", type=Path, default=Path("var"), help="folder for scenes and checkpoints (default: var)"
    )
    given = parser.parse_args(arguments)
    changes = {name: getattr(given, name) for name in ("scenes", "epochs", "threads")}
    try:
        run(given.only, changes, given.into, given.state)
    except KeyboardInterrupt:
        print("\nStopped. The same command continues after the last whole epoch.")


if __name__ == "__main__":
    main()
