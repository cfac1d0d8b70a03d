import django.db.models.deletion
from django.db import migrations, models

# What version 0.1.0 wrote into texts, as foreign keys. A number of a row that no longer exists
# becomes NULL. Without a match substring() is NULL, and a CAST of a text without digits is 0.
FIND_DELIVERY = {
    'postgresql': r"CAST(substring(w.idempotency_key FROM '^delivery:(\d{1,18}):') AS bigint)",
    'sqlite': "CAST(substr(w.idempotency_key, length('delivery:') + 1) AS integer)",
}
FIND_RERUN = {
    'postgresql': r"CAST(substring(w.requested_by FROM ', rerun of run (\d{1,18})$') AS bigint)",
    'sqlite': (
        "CAST(substr(w.requested_by, instr(w.requested_by, ', rerun of run ')"
        " + length(', rerun of run ')) AS integer)"
    ),
}
FILL_DELIVERY = """
UPDATE drover_work_item AS w SET delivery_id = (
    SELECT d.id FROM drover_delivery d WHERE d.tenant_id = w.tenant_id AND d.id = {number})
WHERE w.trigger = 'webhook' AND w.idempotency_key LIKE 'delivery:%'"""
FILL_RERUN = """
UPDATE drover_work_item AS w SET rerun_of_id = (
    SELECT r.id FROM drover_run r WHERE r.tenant_id = w.tenant_id AND r.id = {number})
WHERE w.trigger = 'manual' AND w.requested_by LIKE '%, rerun of run %'"""
FILL_RULE = """
UPDATE drover_work_item AS w SET rule_id = (
    SELECT u.id FROM drover_rule u
    WHERE u.tenant_id = w.tenant_id AND w.requested_by = 'rule ' || u.name)
WHERE w.trigger = 'rule'"""
# The column never had a constraint.
CLEAR_PARENT = """
UPDATE drover_work_item AS w SET parent_run_id = NULL
WHERE w.parent_run_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM drover_run r WHERE r.id = w.parent_run_id)"""


def fill(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(FILL_DELIVERY.format(number=FIND_DELIVERY[vendor]))
        cursor.execute(FILL_RERUN.format(number=FIND_RERUN[vendor]))
        cursor.execute(FILL_RULE)
        cursor.execute(CLEAR_PARENT)


class Migration(migrations.Migration):

    dependencies = [
        ('agents_app', '0010_rules_in_place'),
    ]

    operations = [
        migrations.AddField(
            model_name='workitem',
            name='delivery',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='work_items', to='agents_app.delivery'),
        ),
        migrations.AddField(
            model_name='workitem',
            name='rerun_of',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='agents_app.run'),
        ),
        migrations.AddField(
            model_name='workitem',
            name='rule',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='work_items', to='agents_app.rulestate'),
        ),
        migrations.AddIndex(
            model_name='workitem',
            index=models.Index(condition=models.Q(('delivery__isnull', False)), fields=['delivery'], name='work_item_of_delivery'),
        ),
        migrations.AddIndex(
            model_name='workitem',
            index=models.Index(condition=models.Q(('rule__isnull', False)), fields=['rule'], name='work_item_of_rule'),
        ),
        migrations.AddIndex(
            model_name='workitem',
            index=models.Index(condition=models.Q(('rerun_of__isnull', False)), fields=['rerun_of'], name='work_item_of_rerun_of'),
        ),
        migrations.AddIndex(
            model_name='workitem',
            index=models.Index(condition=models.Q(('parent_run__isnull', False)), fields=['parent_run'], name='work_item_of_parent_run'),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
