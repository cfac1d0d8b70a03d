
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0005_login_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="budget",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="agent",
            name="harness",
            field=models.CharField(blank=True, db_default="", max_length=20),
        ),
        migrations.AddField(
            model_name="agent",
            name="over_budget_until",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="agent",
            name="schedules_from_output",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="run",
            name="borrowed_from",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents_app.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="project_borrowed_from",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents_app.run",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="container",
            field=models.CharField(blank=True, db_default="", max_length=80),
        ),
        migrations.AddField(
            model_name="run",
            name="exit_signal",
            field=models.SmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="progress_percent",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="rerun_requested",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="return_value",
            field=models.TextField(blank=True, db_default=""),
        ),
        migrations.AddField(
            model_name="run",
            name="signaled_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="token_sha256",
            field=models.CharField(db_default="", editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name="run",
            name="waiting_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="over_budget_until",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="workitem",
            name="depth",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="workitem",
            name="parent_run",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="agents_app.run",
            ),
        ),
        migrations.CreateModel(
            name="AgentCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("deadline_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("error", models.CharField(blank=True, max_length=500)),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "caller_run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="agents_app.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.tenant",
                    ),
                ),
                (
                    "work_item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="call",
                        to="agents_app.workitem",
                    ),
                ),
            ],
            options={
                "db_table": "drover_agent_call",
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["deadline_at"],
                        name="agent_call_overdue",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Credential",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("type", models.CharField(max_length=64)),
                ("instance", models.CharField(default="default", max_length=64)),
                ("sealed", models.TextField(editable=False)),
                ("key_id", models.CharField(editable=False, max_length=16)),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
                ("changed_by", models.CharField(blank=True, max_length=200)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to="agents_app.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "drover_credential",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "type", "instance"), name="credential_once_per_instance"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LockWait",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uri", models.CharField(max_length=1024)),
                ("holder", models.CharField(max_length=200)),
                ("since", models.DateTimeField()),
                ("asked_at", models.DateTimeField()),
                ("in_line", models.BooleanField(default=False)),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "drover_lock_wait",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "holder", "uri"), name="lock_wait_once_per_holder"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("sender", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField()),
                ("read_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="messages",
                        to="agents_app.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.tenant",
                    ),
                ),
                (
                    "work_item",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="message",
                        to="agents_app.workitem",
                    ),
                ),
            ],
            options={
                "db_table": "drover_message",
                "indexes": [
                    models.Index(
                        condition=models.Q(("read_at__isnull", True)),
                        fields=["agent", "id"],
                        name="message_unread",
                    ),
                    models.Index(fields=["created_at"], name="message_expired"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResourceLock",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uri", models.CharField(max_length=1024)),
                ("holder", models.CharField(max_length=200)),
                ("held_since", models.DateTimeField()),
                ("ttl_seconds", models.FloatField()),
                ("expires_at", models.DateTimeField()),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="locks",
                        to="agents_app.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="locks",
                        to="agents_app.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "drover_resource_lock",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "uri"), name="resource_lock_held_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Usage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_usd", models.DecimalField(decimal_places=6, default=0, max_digits=14)),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "usage",
                "db_table": "drover_usage",
                "indexes": [models.Index(fields=["tenant", "day"], name="usage_of_tenant")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("agent", "day"), name="usage_once_per_agent_and_day"
                    )
                ],
            },
        ),
    ]
