from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0023_audit_actor_of_old_events")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="metadata_json",
            field=models.TextField(blank=True, db_default="", editable=False),
        ),
    ]
