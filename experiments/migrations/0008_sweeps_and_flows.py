import datetime
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('experiments', '0007_evaluation_trials'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='CodeVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.CharField(max_length=40)),
                ('schema', models.CharField(help_text='the newest migration', max_length=120)),
                ('written', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RenameField("run", "enqueued", "due"),
        migrations.AlterField(
            model_name="run",
            name="due",
            field=models.DateTimeField(default=django.utils.timezone.now, help_text="when it may be claimed"),
        ),
        migrations.CreateModel(
            name='Flow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('open', models.BooleanField(default=True, help_text='whether its runs may be claimed')),
                ('weight', models.FloatField(default=1.0, help_text="its share of the work beside another's")),
                ('deficit', models.FloatField(default=0.0, help_text='seconds of work that it was granted and has not had; below 0: it had more')),
                ('visited', models.DateTimeField(default=datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), help_text='when it last had its turn')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='flows', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='run',
            name='flow',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='experiments.flow'),
        ),
        migrations.CreateModel(
            name='Sweep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('name', models.CharField(max_length=120)),
                ('question', models.TextField()),
                ('task', models.CharField(max_length=20)),
                ('selection', models.JSONField(help_text='which units, as they were chosen')),
                ('variants', models.JSONField(default=list, help_text='backbones and toolsets')),
                ('options', models.JSONField(blank=True, default=dict)),
                ('limits', models.JSONField(default=dict, help_text='of each run')),
                ('seed', models.BigIntegerField(default=0)),
                ('status', models.CharField(choices=[('preparing', 'Preparing'), ('running', 'Running'), ('paused', 'Paused'), ('out_of_budget', 'Out of budget'), ('stopped', 'Stopped'), ('done', 'Done'), ('failed', 'Failed')], db_index=True, default='preparing', max_length=14)),
                ('reason', models.TextField(blank=True, help_text='why it stands still')),
                ('priority', models.PositiveSmallIntegerField(choices=[(1, 'Low'), (2, 'Normal'), (4, 'High')], default=2)),
                ('planned', models.PositiveIntegerField(default=0, help_text='runs it is to have; 0 while they are not counted')),
                ('ended', models.DateTimeField(blank=True, null=True)),
                ('cost_limit', models.FloatField(blank=True, help_text='US dollars', null=True)),
                ('token_limit', models.PositiveBigIntegerField(blank=True, null=True)),
                ('seconds_limit', models.FloatField(blank=True, help_text='seconds of work, all runs together', null=True)),
                ('unpriced', models.BooleanField(default=False, help_text='whether a backbone without a known price may be asked')),
                ('cost', models.FloatField(default=0.0, help_text='US dollars, as far as prices are known')),
                ('tokens', models.PositiveBigIntegerField(default=0)),
                ('seconds', models.FloatField(default=0.0, help_text='seconds of work, waits left out')),
                ('job', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='sweep', to='experiments.job')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sweeps', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created', '-pk'],
            },
        ),
        migrations.AddField(
            model_name='flow',
            name='sweep',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='flow', to='experiments.sweep'),
        ),
        migrations.AddField(
            model_name='run',
            name='sweep',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='experiments.sweep'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('status__in', ('queued', 'running'))), fields=['flow', '-status', 'id'], name='claimable_runs'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('status__in', ('queued', 'running'))), fields=['flow', 'model', '-status', 'id'], name='claimable_runs_of_a_model'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['sweep', 'status'], name='runs_of_a_sweep'),
        ),
        migrations.AddConstraint(
            model_name='flow',
            constraint=models.UniqueConstraint(condition=models.Q(('sweep__isnull', True)), fields=('owner',), name='one_flow_for_each_person'),
        ),
    ]
