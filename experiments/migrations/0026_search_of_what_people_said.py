"""Search: notes to agents, comments, reviews, final verdicts and tags are found, those of before too."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from experiments.core.search_index import opinions, texts as passages, sqlite

KINDS = ("remark", "comment", "review", "final", "tag")
AT_ONCE = 200


def write_passages(apps: Any, schema_editor: Any) -> None:
    """In batches; what a first migration of all events has written of notes is written again."""
    rows = {
        name: apps.get_model("experiments", name).objects
        for name in ("Adjudication", "Comment", "Event", "Experiment", "Observation", "Opinions", "Passage", "Review")
    }
    write = Writer(rows["Passage"], schema_editor)
    rows["Passage"].filter(kind__in=KINDS).delete()
    for event in each(rows["Event"].filter(kind="remark").select_related("run")):
        write(passages.of_event(event.run, event, passages.texts_of(event.kind, event.payload)))
    for comment in each(rows["Comment"].select_related("thread__run")):
        write(opinions.of_comment(comment))
    for review in each(rows["Review"].filter(state="submitted").select_related("item__run")):
        write(opinions.of_review(review))
    for final in each(rows["Adjudication"].select_related("item__run")):
        write(opinions.of_final(final))
    for brought in each(rows["Opinions"].select_related("run")):
        write(opinions.of_brought(brought))
    write_tags(apps, rows, write)
    write.flush()


def write_tags(apps: Any, rows: Any, write: Writer) -> None:
    run = apps.get_model("experiments", "Run").objects
    for row in each(run.filter(tags__isnull=False).distinct()):
        write(opinions.of_run_tags(row))
    tried = rows["Experiment"].filter(tags__isnull=False).order_by().values("run")
    for row in each(run.filter(pk__in=tried)):
        write(opinions.of_experiment_tags(row))
    for row in each(rows["Observation"].filter(tags__isnull=False).distinct().select_related("run", "experiment")):
        write(opinions.of_image_tags(row))


def each(rows: Any) -> Any:
    return rows.order_by("pk").iterator(chunk_size=AT_ONCE)


class Writer:
    """Saves passages some at a time, as the rows of this migration."""

    def __init__(self, rows: Any, schema_editor: Any) -> None:
        self.rows, self.database = rows, schema_editor.connection
        self.waiting: list[Any] = []

    def __call__(self, found: list[Any]) -> None:
        self.waiting += found
        if len(self.waiting) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        names = [field.attname for field in self.rows.model._meta.fields if not field.primary_key]
        fresh = [self.rows.model(**{name: getattr(row, name) for name in names}) for row in self.waiting]
        saved = self.rows.bulk_create(fresh)
        if self.database.vendor == "sqlite":
            sqlite.index([(row.pk, row.folded) for row in saved], self.database)
        self.waiting = []


class Migration(migrations.Migration):
    dependencies: ClassVar = [("experiments", "0025_notes_on_exemplars")]

    operations: ClassVar[list[Operation]] = [
        migrations.AlterField(
            model_name="passage",
            name="kind",
            field=models.CharField(
                choices=[
                    ("question", "Question"),
                    ("hypothesis", "Hypothesis"),
                    ("reply", "Reply"),
                    ("code", "Program"),
                    ("output", "Output"),
                    ("title", "Image"),
                    ("description", "Conclusion"),
                    ("label", "Label"),
                    ("remark", "Note"),
                    ("comment", "Comment"),
                    ("review", "Review"),
                    ("final", "Final verdict"),
                    ("tag", "Tag"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="passage",
            name="anchor",
            field=models.BigIntegerField(
                help_text="number of the experiment, round of the reply or note; key of the observation, label, "
                "comment, review, final verdict",
                null=True,
            ),
        ),
        migrations.RunPython(write_passages, migrations.RunPython.noop),
    ]
