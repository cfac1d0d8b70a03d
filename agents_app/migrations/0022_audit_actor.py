from django.db import migrations, models

# The same on both databases. The operation alone would copy the table on SQLite.
ADD = "ALTER TABLE drover_run_event ADD COLUMN \"actor\" varchar(200) DEFAULT '' NOT NULL"
DROP = 'ALTER TABLE drover_run_event DROP COLUMN "actor"'


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0021_sandbox_of_runs'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddField(
                    model_name='runevent',
                    name='actor',
                    field=models.CharField(
                        blank=True, db_default='', editable=False, max_length=200
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name='runevent',
            index=models.Index(
                condition=models.Q(('actor', ''), _negated=True),
                fields=['tenant', 'at', 'id'],
                name='run_event_of_audit',
            ),
        ),
    ]
