from django.db import migrations, models

# The same on both databases. The operation alone would copy the table on SQLite.
ADD = "ALTER TABLE drover_tenant ADD COLUMN \"project\" varchar(1024) DEFAULT '' NOT NULL"
DROP = 'ALTER TABLE drover_tenant DROP COLUMN "project"'


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0026_formats_file_of_agents")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AddField(
                    model_name="tenant",
                    name="project",
                    field=models.CharField(
                        blank=True, db_default="", default="", max_length=1024
                    ),
                ),
            ],
        ),
    ]
