from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0017_schedule_counts'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='body_sha256',
            field=models.BinaryField(editable=False, null=True),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(
                condition=models.Q(('body_sha256__isnull', False)),
                fields=('source', 'body_sha256'),
                name='delivery_body_once_per_source',
            ),
        ),
    ]
