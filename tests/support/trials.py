"""Units with labels of several sources, and trials between them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils import timezone

from experiments.core.actors import Actor
from experiments.models import (
    Dataset,
    Exemplar,
    Image,
    Label,
    Layer,
    PairKind,
    PairwiseTrial,
    Run,
    Unit,
    UnitProfile,
    VisionModelRow,
)
from experiments.pairwise import actions, sources
from experiments.pairwise.form import NewTrial
from tests.support.builders import make_run

COLOURS = ("red", "green", "blue", "white", "black", "yellow", "grey", "pink", "brown", "orange", "purple", "cyan")
AGENT, MILAN = "agent", "import:milan"
SECRETS = ("import:milan", "milan", "agent", "known", "repeat", "source", "layer4")


def layer(kind: str = "conv", names: tuple[str, ...] = ()) -> Layer:
    name = "synthetic:toybox-eyes" if names else "toybox"
    model, _ = VisionModelRow.objects.get_or_create(name=name)
    known = {"position": 0, "path": "layer4", "kind": kind, "units": 64, "names": list(names)}
    return Layer.objects.get_or_create(model=model, name="toys" if names else "layer4", defaults=known)[0]


def unit(number: int, of: Layer | None = None) -> Unit:
    return Unit.objects.create(layer=of or layer(), number=number)


def exemplars(of: Unit, *keys: str) -> UnitProfile:
    """A written profile whose exemplars are these images, each also its own masked one."""
    dataset, _ = Dataset.objects.get_or_create(key="toybox", defaults={"label": "Toybox"})
    profile = UnitProfile.objects.create(unit=of, dataset=dataset, written=timezone.now())
    for rank, key in enumerate(keys, 1):
        Image.objects.get_or_create(key=key, defaults={"width": 8, "height": 8, "origin": "exemplar"})
        Exemplar.objects.create(profile=profile, rank=rank, activation=9.0 - rank, image_id=key, masked_id=key)
    return profile


def label(of: Unit, text: str, source: str = "milan", run: Run | None = None) -> Label:
    row = Label.objects.create(text=text, source="run" if run else source, run=run)
    row.units.add(of)
    return row


def labelled(owner: User, count: int = 12) -> list[Unit]:
    """Units with an exemplar, a label of an agent's run and an imported one each."""
    found = []
    for number, colour in enumerate(COLOURS[:count]):
        each = unit(number)
        exemplars(each, f"{number:064x}")
        label(each, f"{colour} balls", run=make_run(owner, unit=number))
        label(each, f"something {colour}")
        found.append(each)
    return found


def form(**fields: Any) -> NewTrial:
    """The form, filled in as a browser sends it."""
    sent = QueryDict(mutable=True)
    known = {"name": "Agent against MILAN", "most": "100", "repeats": "25", "known_answers": "25", "seed": "3"}
    sent.update({name: str(value) for name, value in (known | fields).items() if name != "source"})
    sent.setlist("source", fields.get("source", [AGENT, MILAN]))
    return NewTrial(sent, sources.list_sources())


def trial(owner: User, **fields: Any) -> PairwiseTrial:
    filled = form(**fields)
    return actions.make_trial(Actor(owner), filled)


def judged(client: Any, trial: PairwiseTrial, prefer: str) -> None:
    """Judge everything: the label of a source, the right one where it is known, in repeats the same as before."""
    for pair in trial.pairs.all():
        right = "a" if pair.kind == PairKind.KNOWN or pair.source_a == prefer else "b"
        client.post(
            f"/judging/trials/{trial.pk}/answer/", {"item": pair.pk, "answer": on_screen(client, pair.pk, right)}
        )


def on_screen(client: Any, pair: int, wanted: str) -> str:
    """Whether the wanted side of a pair is the first or the second label on this client's screen."""
    from experiments.models import Pair
    from experiments.pairwise import judging

    row = Pair.objects.select_related("trial").get(pk=pair)
    user = User.objects.get(pk=client.session["_auth_user_id"])
    swapped = judging.is_swapped(row.trial, row, judging.key_of(user))
    return "first" if (wanted == "a") != swapped else "second"
