from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0018_body_hash'),
    ]

    operations = [
        migrations.AlterField(
            model_name='delivery',
            name='outcome',
            field=models.CharField(choices=[('matched', 'Matched'), ('unmatched', 'No agent matched'), ('ignored', 'Ignored: not an event for agents'), ('unparseable', 'Unparseable'), ('refused', 'Refused: not stored')], max_length=11),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('outcome', 'refused')), fields=['source', 'id'], name='delivery_refused'),
        ),
    ]
