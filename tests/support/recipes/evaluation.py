"""An evaluation: captions, the labels that exemplars alone give to synthetic neurons, scored by the truth."""

from __future__ import annotations

from tests.support.recipes.recipe import Recipe

EVALUATION = Recipe(
    new={
        "workers/jobs/evaluations/captions.py": '''
            """Captions: how often exemplars alone name what a synthetic neuron was built to respond to."""

            from __future__ import annotations

            from collections.abc import Sequence

            from experiments.models import Evaluation, EvaluationItem
            from workers.jobs.evaluations import figures
            from workers.jobs.evaluations.evaluation_type import EvaluationType
            from workers.jobs.evaluations.sources import ONE_SHOT
            from workers.jobs.evaluations.synthetic import choose_neurons
            from workers.jobs.evaluations.truth import score_truth
            from workers.protocols import Progress
            from workers.record.evaluations import EvaluationResult


            def _plan(evaluation: Evaluation, progress: Progress) -> list[EvaluationItem]:
                del progress
                items = [item for item, _ in choose_neurons(evaluation)]
                for item in items:
                    item.source = ONE_SHOT
                return items


            def _summarise(evaluation: Evaluation, items: Sequence[EvaluationItem]) -> EvaluationResult:
                del evaluation
                done = figures.filter_source(items, ONE_SHOT)
                return EvaluationResult((figures.share_figure("right", "Share right", done, "right"),))


            EVALUATION_TYPE = EvaluationType(_plan, _summarise, score_truth, checks_labels=False)
            ''',
    },
    lines=(
        (
            "workers/record/evaluation_kinds.py",
            '    BIAS = "bias", "Biases"',
            '    CAPTIONS = "captions", "Captions"\n',
        ),
        (
            "workers/record/evaluation_kinds.py",
            "        KindRow(\n            key=EvaluationKind.BIAS,",
            """\
        KindRow(
            key=EvaluationKind.CAPTIONS,
            says="Labels from exemplars alone: how often do they name what a neuron was built to respond to?",
            noun="neurons",
            units=20,
            asks=frozenset({"batch", "units"}),
            runs=0,
            truth_in_words=True,
        ),
""",
        ),
        ("workers/jobs/evaluations/README.md", "- `synthetic.py`", "- `captions.py`: labels from exemplars only\n"),
    ),
    test=(
        "tests/evaluations/test_captions.py",
        '''
        """Captions are offered, started by script, planned and summarised."""

        import pytest

        from experiments.models import Evaluation
        from workers.jobs.evaluations.engine import find_evaluation_type
        from workers.protocols import no_progress

        pytestmark = pytest.mark.usefixtures("on_toybox", "no_redis")


        @pytest.mark.django_db(transaction=True)
        def test_they_are_offered_started_and_planned(as_owner):
            assert "Captions" in as_owner.get("/evaluations/new/").content.decode()
            assert as_owner.get("/evaluations/new/?kind=captions").status_code == 200
            sent = {"kind": "captions", "units": 2}
            told = as_owner.post("/api/v1/evaluations", sent, content_type="application/json")
            assert told.status_code == 201, told.content
            row = Evaluation.objects.get()
            row.options["model"] = "synthetic:toybox-eyes"
            evaluation_type = find_evaluation_type(row)
            items = evaluation_type.plan(row, no_progress)
            assert {item.source for item in items} == {"one-shot"}
            for item in items:
                item.status, item.scores = "done", {"right": item is items[0]}
            (figure,) = evaluation_type.summarise(row, items).figures
            assert (figure.value, figure.n) == (0.5, 2)
            assert as_owner.get(row.get_absolute_url()).status_code == 200
        ''',
    ),
    accepted=("tests/house/test_migrations.py",),
)
