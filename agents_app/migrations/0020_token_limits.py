from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0019_refused_deliveries")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(
                blank=True,
                help_text="From then on the token is refused; empty means never.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="addresses",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="Addresses and networks that may use the token; empty means all.",
            ),
        ),
    ]
