from django.db import migrations, models

# The same on both databases. The operation alone would copy the table twice on SQLite, with all
# output in it.
ADD = (
    'ALTER TABLE drover_run_output '
    'ADD COLUMN "first_line" integer DEFAULT 0 NOT NULL CHECK ("first_line" >= 0)',
    'ALTER TABLE drover_run_output ADD COLUMN "carried" text DEFAULT \'\' NOT NULL',
)
DROP = (
    'ALTER TABLE drover_run_output DROP COLUMN "carried"',
    'ALTER TABLE drover_run_output DROP COLUMN "first_line"',
)


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0011_provenance'),
        ('agents_app', '0012_labels'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddField(
                    model_name='runoutput',
                    name='first_line',
                    field=models.PositiveIntegerField(db_default=0),
                ),
                migrations.AddField(
                    model_name='runoutput',
                    name='carried',
                    field=models.TextField(blank=True, db_default=''),
                ),
            ],
        ),
    ]
