from django.db import migrations, models

# The same on both databases. The operation alone would copy the table on SQLite.
ADD = "ALTER TABLE drover_agent ADD COLUMN \"file_name\" varchar(255) DEFAULT 'SKILL.md' NOT NULL"
DROP = 'ALTER TABLE drover_agent DROP COLUMN "file_name"'


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0025_work_sources'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddField(
                    model_name='agent',
                    name='file_name',
                    field=models.CharField(
                        db_default='SKILL.md', default='SKILL.md', editable=False, max_length=255
                    ),
                ),
            ],
        ),
    ]
