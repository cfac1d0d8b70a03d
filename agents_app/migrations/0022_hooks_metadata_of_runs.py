from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0021_sandbox_of_runs")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="metadata_json",
            field=models.TextField(blank=True, db_default="", editable=False),
        ),
    ]
