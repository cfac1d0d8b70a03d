from django.db import migrations, transaction

from agents_app.output.numbering import Numbering

# Up to 64 kB each: so much output is in memory at once, and so many rows change in one transaction.
ROWS_AT_ONCE = 200


def number_lines(apps, schema_editor):
    """Each batch is a transaction of its own. Running it again writes the same numbers."""
    rows = apps.get_model('agents_app', 'RunOutput').objects.using(schema_editor.connection.alias)
    run_id = seq = 0
    numbering = Numbering()
    while batch := list(next_rows(rows, run_id, seq)):
        changed = []
        for row in batch:
            if row.run_id != run_id:
                run_id, numbering = row.run_id, Numbering()
            if (row.first_line, row.carried) != (numbering.count, numbering.carried):
                row.first_line, row.carried = numbering.count, numbering.carried
                changed.append(row)
            seq = row.seq
            numbering.feed(seq, row.stream, bytes(row.data))
        with transaction.atomic(using=schema_editor.connection.alias):
            rows.bulk_update(changed, ['first_line', 'carried'], batch_size=100)


def next_rows(rows, run_id, seq):
    """The rest of a run, then the runs after it: both in the order of the index (run, seq)."""
    batch = list(rows.filter(run_id=run_id, seq__gt=seq).order_by('seq')[:ROWS_AT_ONCE])
    left = ROWS_AT_ONCE - len(batch)
    if left:
        batch += rows.filter(run_id__gt=run_id).order_by('run_id', 'seq')[:left]
    return batch


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('agents_app', '0013_output_line_numbers'),
    ]

    operations = [
        migrations.RunPython(number_lines, migrations.RunPython.noop),
    ]
