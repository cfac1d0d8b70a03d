import re

from django.db import migrations, transaction

ROWS_AT_ONCE = 500
# Where earlier versions wrote the person, token, rule or run into the detail of an event.
FIRST = re.compile(r'(.*?)(?:: |\Z)', re.DOTALL)
AFTER_NAME = re.compile(r'.*?: (.*?)(?:: |\Z)', re.DOTALL)
LAST = re.compile(r'.*: (.*)', re.DOTALL)
AFTER_BY = re.compile(r'(?:.*? )?by (.*)', re.DOTALL)
# The last one: a name may contain " from ", an address does not.
BEFORE_FROM = re.compile(r'(.*) from ', re.DOTALL)
PATTERNS = {
    **dict.fromkeys(
        (
            *('agent.paused', 'agent.resumed', 'agent.scaled', 'agent.stopped'),
            *('credential.set', 'credential.removed', 'delivery.replayed', 'project.scaled'),
            *('queue.cleared', 'queue.restored', 'rules.heard', 'rules.silenced', 'run.rerun'),
            *('scheduler.paused', 'scheduler.resumed', 'scheduler.stopping'),
            *('tenant.created', 'tenant.disabled', 'tenant.enabled'),
            *('token.created', 'token.revoked', 'token.rotated', 'work.requested'),
            *('webhook.secret_added', 'webhook.secret_revoked'),
            *('webhook.source_saved', 'webhook.source_switched'),
        ),
        FIRST,
    ),
    **dict.fromkeys(
        (
            'agent.forgotten',
            *('schedule.canceled', 'schedule.created', 'schedule.deleted', 'schedule.edited'),
            *('schedule.paused', 'schedule.resumed', 'schedule.retried', 'tenant.deleted'),
        ),
        AFTER_NAME,
    ),
    'lock.broken': LAST,
    **dict.fromkeys(('agent.messaged', 'work.dropped', 'work.restored'), AFTER_BY),
    **dict.fromkeys(('login.failed', 'login.locked', 'login.succeeded'), BEFORE_FROM),
}
# Other stops are by a limit or by a newer firing.
STOPPED_BY = re.compile(r'(?:stopped|its (?:schedule|tenant) was deleted) by (.*)', re.DOTALL)
# An event without a name stays in the audit.
UNKNOWN = 'unknown'


def actor_of(event):
    if event.name == 'run.stop_requested':
        found = STOPPED_BY.match(event.detail)
        who = found[1] if found else ''
        return f'run {event.run_id}' if who == 'itself' else who[:200]
    found = PATTERNS[event.name].match(event.detail)
    return (found[1] if found else '')[:200] or UNKNOWN


def fill_actor(apps, schema_editor):
    """Each batch is a transaction of its own. Events that have an actor keep it."""
    alias = schema_editor.connection.alias
    events = apps.get_model('agents_app', 'RunEvent').objects.using(alias)
    old = events.filter(name__in=[*PATTERNS, 'run.stop_requested'], actor='').order_by('pk')
    last = 0
    while batch := list(old.filter(pk__gt=last)[:ROWS_AT_ONCE]):
        last = batch[-1].pk
        for event in batch:
            event.actor = actor_of(event)
        with transaction.atomic(using=alias):
            events.bulk_update(batch, ['actor'], batch_size=100)


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('agents_app', '0022_audit_actor'),
    ]

    operations = [
        migrations.RunPython(fill_actor, migrations.RunPython.noop),
    ]
