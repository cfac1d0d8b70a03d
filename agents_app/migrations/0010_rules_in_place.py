import django.db.models.deletion
from django.db import migrations, models


def leave_room(apps, schema_editor):
    """Rules change with every look and never by what they are found by: where a page has room, the
    new version of a row goes beside the old one, and no index is written (HOT, half the time)."""
    if schema_editor.connection.vendor == 'postgresql':
        schema_editor.execute('ALTER TABLE drover_rule SET (fillfactor = 40)')


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0009_activity'),
    ]

    operations = [
        migrations.AlterField(
            model_name='rulestate',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='agents_app.tenant'),
        ),
        migrations.RunPython(leave_room, migrations.RunPython.noop),
    ]
