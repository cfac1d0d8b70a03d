"""The state `stopping` of the scheduler is called `draining`."""

from typing import Any

from django.db import migrations, models


def rename(old: str, new: str) -> Any:
    def change(apps: Any, _editor: Any) -> None:
        apps.get_model("agents_app", "Scheduler").objects.filter(state=old).update(state=new)

    return change


class Migration(migrations.Migration):

    dependencies = [
        ("agents_app", "0015_webhook_labels"),
    ]

    operations = [
        migrations.AlterField(
            model_name="scheduler",
            name="state",
            field=models.CharField(
                choices=[
                    ("running", "Running"),
                    ("draining", "Draining"),
                    ("stopped", "Stopped"),
                ],
                default="running",
                max_length=8,
            ),
        ),
        migrations.RunPython(rename("stopping", "draining"), rename("draining", "stopping")),
    ]
