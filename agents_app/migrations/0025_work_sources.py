import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0024_hooks_metadata_of_runs'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='work_source',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='schedule',
            name='work_source',
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='firing',
            name='outcome',
            field=models.CharField(blank=True, choices=[('', 'undecided'), ('polling', 'Polling'), ('started', 'Started'), ('queued', 'Queued'), ('skipped', 'Skipped'), ('failed', 'Failed')], default='', max_length=8),
        ),
        migrations.AlterField(
            model_name='firing',
            name='reason',
            field=models.CharField(blank=True, choices=[('disabled', 'Disabled'), ('already_running', 'Already Running'), ('at_capacity', 'At Capacity'), ('paused', 'Paused'), ('budget', 'Budget'), ('tenant_disabled', 'Tenant Disabled'), ('missed', 'Missed'), ('stopping', 'Stopping'), ('no_work', 'No Work'), ('source_failed', 'Source Failed')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='firing',
            index=models.Index(condition=models.Q(('outcome', 'polling')), fields=['id'], name='firing_polling'),
        ),
        migrations.CreateModel(
            name='WorkSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('type', models.CharField(max_length=20)),
                ('name', models.CharField(max_length=1000)),
                ('settings', models.JSONField(default=dict)),
                ('fingerprint', models.CharField(editable=False, max_length=64)),
                ('queue', models.JSONField(default=list, editable=False)),
                ('etag', models.CharField(blank=True, editable=False, max_length=200)),
                ('polled_at', models.DateTimeField(blank=True, null=True)),
                ('blocked_until', models.DateTimeField(blank=True, null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('last_error', models.CharField(blank=True, max_length=500)),
                ('busy_by', models.CharField(blank=True, editable=False, max_length=300)),
                ('busy_until', models.DateTimeField(blank=True, editable=False, null=True)),
                ('delivery_cursor', models.BigIntegerField(default=0, editable=False)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='work_sources', to='agents_app.tenant')),
            ],
            options={
                'verbose_name': 'work source',
                'db_table': 'drover_work_source',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'fingerprint'), name='work_source_once_per_tenant')],
            },
        ),
        migrations.CreateModel(
            name='WorkClaim',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item_id', models.CharField(max_length=300)),
                ('item_key', models.CharField(editable=False, max_length=64)),
                ('title', models.CharField(blank=True, max_length=500)),
                ('url', models.CharField(blank=True, max_length=2000)),
                ('token', models.CharField(editable=False, max_length=32)),
                ('ready_at', models.DateTimeField()),
                ('stage', models.CharField(choices=[('claiming', 'Claiming'), ('claimed', 'Claimed'), ('ended', 'Ended')], default='claiming', max_length=8)),
                ('outcome', models.CharField(blank=True, choices=[('', 'none yet'), ('succeeded', 'Succeeded'), ('failed', 'Failed: not tried again'), ('released', 'Released: ready again'), ('not_claimed', 'Not claimed')], default='', max_length=12)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('failed_attempts', models.PositiveIntegerField(default=0)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(blank=True, null=True)),
                ('last_error', models.CharField(blank=True, max_length=500)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents_app.agent')),
                ('firing', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents_app.firing')),
                ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='claims', to='agents_app.worksource')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agents_app.tenant')),
                ('work_item', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='claim', to='agents_app.workitem')),
            ],
            options={
                'verbose_name': 'claim',
                'db_table': 'drover_work_claim',
                'indexes': [models.Index(condition=models.Q(('stage', 'ended'), _negated=True), fields=['source', 'stage'], name='work_claim_open'), models.Index(fields=['ended_at'], name='work_claim_expired')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('stage', 'ended'), _negated=True), fields=('tenant', 'item_key'), name='work_claim_open_once')],
            },
        ),
    ]
