"""Plain names: flow -> run queue, presence question -> concept question, held up -> waiting, laid out -> created."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

QUEUE = "runqueue"


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0039_identities"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex("run", "claimable_runs"),
        migrations.RemoveIndex("run", "claimable_runs_of_a_model"),
        migrations.RemoveConstraint("flow", "one_flow_for_each_person"),
        migrations.RenameModel("Flow", "RunQueue"),
        migrations.RenameField(QUEUE, "open", "enabled"),
        migrations.RenameField(QUEUE, "visited", "last_served"),
        migrations.AlterField(
            QUEUE,
            "owner",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="run_queues",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            QUEUE,
            "sweep",
            models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="run_queue",
                to="experiments.sweep",
            ),
        ),
        migrations.AddConstraint(
            QUEUE,
            models.UniqueConstraint(
                condition=models.Q(("sweep__isnull", True)), fields=("owner",), name="one_run_queue_for_each_person"
            ),
        ),
        migrations.RenameField("run", "flow", "run_queue"),
        migrations.RenameField("run", "held_up", "waiting_reason"),
        migrations.AddIndex(
            "run", models.Index(fields=["run_queue", "-status", "sweep_place", "id"], name="claimable_runs")
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["run_queue", "model", "-status", "sweep_place", "id"], name="claimable_runs_of_a_model"
            ),
        ),
        migrations.RenameField("sweep", "laid_out", "created_runs"),
        migrations.RemoveConstraint("presencequestion", "one_presence_question_per_position"),
        migrations.RemoveConstraint("presenceanswer", "one_presence_answer_per_person_and_question"),
        migrations.RenameModel("PresenceQuestion", "ConceptQuestion"),
        migrations.RenameModel("PresenceAnswer", "ConceptAnswer"),
        migrations.AlterField(
            "conceptanswer",
            "user",
            models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="concept_answers",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            "conceptquestion",
            "image",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="concept_questions",
                to="experiments.image",
            ),
        ),
        migrations.AddConstraint(
            "conceptquestion",
            models.UniqueConstraint(fields=("label_check", "position"), name="one_concept_question_per_position"),
        ),
        migrations.AddConstraint(
            "conceptanswer",
            models.UniqueConstraint(fields=("question", "user"), name="one_concept_answer_per_person_and_question"),
        ),
        migrations.AlterField(
            "layerindex",
            "dead",
            models.JSONField(
                help_text="numbers of the units that no image activates; null if not measured", null=True
            ),
        ),
        migrations.AlterField(
            "observation",
            "activation",
            models.FloatField(
                help_text="what the system returned; the value claimed by the program if it was not measured"
            ),
        ),
    ]
