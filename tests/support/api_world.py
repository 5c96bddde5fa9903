"""A little of everything that the API tells of, and a token to ask with."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from random import Random
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from experiments.core import transcript
from experiments.models import (
    ApiToken,
    Backbone,
    CausalCheck,
    CheckStatus,
    Circuit,
    CircuitGraph,
    CircuitSearch,
    Dataset,
    Evaluation,
    EvaluationKind,
    Exemplar,
    Image,
    Job,
    Label,
    LabelCheck,
    Layer,
    PairwiseTrial,
    ReviewQueue,
    Run,
    SparseAutoencoderRow,
    Study,
    Sweep,
    Thread,
    TokenScope,
    Toolset,
    Unit,
    UnitProfile,
    VisionModelRow,
    WebhookDelivery,
)
from tests.support import builders
from tests.support.autoencoders import add_report, make_autoencoder
from tests.support.builders import make_run
from tests.support.causal_checks import make_causal_check
from tests.support.circuit_graphs import make_circuit_graph
from tests.support.circuits import make_circuit, make_circuit_search
from tests.support.seeding import evaluations
from tests.support.studies import make_study
from tests.support.webhook_receiver import make_given_up
from workers.record.replies import Hypothesis

KEY = "e" * 64
PNG = b"\x89PNG\r\n\x1a\n not really"


@dataclass(frozen=True)
class World:
    run: Run
    layer: Layer
    label: Label
    job: Job
    trial: PairwiseTrial
    thread: Thread
    evaluation: Evaluation
    check: LabelCheck
    sweep: Sweep
    autoencoder: SparseAutoencoderRow
    causal_check: CausalCheck
    circuit: Circuit
    circuit_graph: CircuitGraph
    circuit_search: CircuitSearch
    study: Study
    delivery: WebhookDelivery

    @property
    def places(self) -> dict[str, Any]:
        """What stands in addresses: the first row of everything."""
        return {"key": KEY, "number": 1}


def fill(owner: User) -> World:
    """One of each; a run with an experiment, an observation and a hypothesis."""
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    if not default_storage.exists(Image.path_of(KEY)):
        default_storage.save(Image.path_of(KEY), ContentFile(PNG))
    model = VisionModelRow.objects.create(name="toybox", label="Toybox net")
    layer = Layer.objects.create(
        model=model, position=0, name="layer4", path="net.layer4", kind="conv", units=64, names=[]
    )
    unit = Unit.objects.create(layer=layer, number=1)
    dataset = Dataset.objects.create(key="toybox", label="Toybox", images=200)
    profile = UnitProfile.objects.create(unit=unit, dataset=dataset, written=timezone.now(), mean=0.5, maximum=2.0)
    Exemplar.objects.create(profile=profile, rank=1, activation=2.0, image_id=KEY, masked_id=KEY)
    Backbone.objects.create(key="scripted", label="Scripted scientist")
    Toolset.objects.create(key="toybox", label="Toybox")
    label = Label.objects.create(text="red balls", source="person")
    label.units.add(unit)
    job = Job.objects.create(kind="index", subject="toybox", options={"model": "toybox", "layers": ["layer4"]})
    trial = PairwiseTrial.objects.create(name="red", owner=owner, sources=["agent", "person"], closed=timezone.now())
    run = told_run(owner)
    ReviewQueue.objects.create(name="pass one", owner=owner).items.create(run=run, position=1)
    thread = Thread.objects.create(run=run, on="run")
    thread.comments.create(author=owner, text="Too few.")
    check = evaluations.make_check(unit, "red balls", CheckStatus.DONE, Random(0))
    check.questions.create(position=1, image_id=KEY, probe_position=0)  # people were asked once
    Run.objects.filter(pk=run.pk).update(label_check=check)
    run.refresh_from_db()
    evaluation = evaluations.make_evaluation(owner, EvaluationKind.SYNTHETIC, [check], [run], Random(0))
    circuit = make_circuit(owner, unit, "edges")
    return World(
        run=run,
        layer=layer,
        label=label,
        job=job,
        trial=trial,
        thread=thread,
        evaluation=evaluation,
        check=check,
        sweep=Sweep.objects.create(owner=owner, name="All", task="describe", selection={"model": "toybox"}),
        autoencoder=_make_measured(),
        causal_check=make_causal_check(layer, dataset, 1),
        circuit=circuit,
        circuit_graph=make_circuit_graph(circuit, dataset),
        circuit_search=make_circuit_search(layer, dataset),
        study=make_study(owner, run, unit),
        delivery=make_given_up(owner),
    )


def _make_measured() -> SparseAutoencoderRow:
    row = make_autoencoder("toys")
    add_report(row)
    return row


def told_run(owner: User) -> Run:
    run = make_run(owner, unit=1)
    reply = builders.replied(hypotheses=(Hypothesis(1, "It likes red."),))
    transcript.append(run.pk, "started", builders.started())
    transcript.append(run.pk, "reply", reply)
    transcript.append(run.pk, "experiment", builders.experiment())
    transcript.append(run.pk, "result", builders.result(images=(KEY, KEY, KEY)))
    run.refresh_from_db()
    return run


def token(user: User, scope: TokenScope = TokenScope.WRITE) -> dict[str, str]:
    """The header that a script of this person sends."""
    return {"Authorization": f"Bearer {ApiToken.issue(user, 'tests', scope)[1]}"}


class Script:
    """Somebody who asks the API with a token."""

    def __init__(self, user: User, scope: TokenScope = TokenScope.WRITE) -> None:
        self.client, self.headers = Client(), token(user, scope)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content: dict[str, Any] = {} if body is None else {"data": body, "content_type": "application/json"}
        return self.client.generic(
            method,
            f"/api/v1{path}",
            **({"data": dumped(body), "content_type": "application/json"} if content else {}),
            headers=self.headers | named,
        )

    def upload(self, path: str, fields: dict[str, Any]) -> Any:
        """A form; bytes are sent as a file."""
        sent = {name: BytesIO(each) if isinstance(each, bytes) else each for name, each in fields.items()}
        return self.client.post(f"/api/v1{path}", sent, headers=self.headers)

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("POST", path, body, **headers)


def dumped(body: Any) -> str:
    import json

    return body if isinstance(body, str) else json.dumps(body)
