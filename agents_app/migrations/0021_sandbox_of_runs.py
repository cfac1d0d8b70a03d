from django.db import migrations, models

# The same on both databases. The operation alone would copy the table on SQLite.
ADD = "ALTER TABLE drover_run ADD COLUMN \"sandbox\" varchar(100) DEFAULT '' NOT NULL"
DROP = 'ALTER TABLE drover_run DROP COLUMN "sandbox"'


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0020_token_limits'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddField(
                    model_name='run',
                    name='sandbox',
                    field=models.CharField(
                        blank=True, db_default='', editable=False, max_length=100
                    ),
                ),
            ],
        ),
    ]
