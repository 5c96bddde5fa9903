import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import experiments.models.transfer


class Migration(migrations.Migration):

    dependencies = [("experiments", "0007_api")]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='kind',
            field=models.CharField(choices=[('model', 'Add a model'), ('data_set', 'Add a data set'), ('index', 'Index'), ('export', 'Export'), ('import', 'Import')], max_length=10),
        ),
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(choices=[('bundle', 'Runs, whole'), ('runs', 'Runs'), ('experiments', 'Experiments'), ('observations', 'Observations'), ('labels', 'Labels')], max_length=12)),
                ('format', models.CharField(choices=[('zip', 'Bundle (.zip)'), ('jsonl', 'JSON Lines'), ('csv', 'CSV'), ('parquet', 'Parquet')], max_length=8)),
                ('query', models.TextField(blank=True, help_text='which of them, as in the address of the page')),
                ('count', models.PositiveBigIntegerField(help_text='what the file holds, in rows or runs', null=True)),
                ('size', models.PositiveBigIntegerField(help_text='bytes; empty until the file is whole', null=True)),
                ('expires', models.DateTimeField(db_index=True, default=experiments.models.transfer.expiry)),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='export', to='experiments.job')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('bundle', 'Bundle'), ('history', 'Published transcript'), ('labels', 'Labels')], max_length=8)),
                ('name', models.CharField(help_text='what its owner calls the file', max_length=200)),
                ('size', models.PositiveBigIntegerField(default=0)),
                ('job', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='import_of', to='experiments.job')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Arrival',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('bundle', 'Bundle'), ('history', 'Published transcript'), ('labels', 'Labels')], max_length=8)),
                ('name', models.CharField(help_text='of the file', max_length=200)),
                ('identity', models.CharField(max_length=64, unique=True)),
                ('owner', models.CharField(blank=True, help_text='who asked, where the run took place', max_length=150)),
                ('number', models.PositiveBigIntegerField(help_text='of the run there', null=True)),
                ('parent', models.JSONField(blank=True, default=dict, help_text='identity and number of the run it was forked from')),
                ('time', models.DateTimeField(default=django.utils.timezone.now)),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='arrival', to='experiments.run')),
                ('brought', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='arrivals', to='experiments.import')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
    ]
