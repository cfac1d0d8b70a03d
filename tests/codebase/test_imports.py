"""Who may import whom: edges, verbs, bookkeeping, rows, pure things; nothing points up."""

import pytest

from tests.codebase.source import PACKAGES, Module, modules

# From the top to the bottom. The longest name that fits a module decides.
LAYERS: dict[str, tuple[str, ...]] = {
    "edges": (
        "gateway_app",
        "scheduler_project",
        "agents_app.admin",
        "agents_app.apps",
        "agents_app.checks",
        "agents_app.cli",
        "agents_app.management",
        "agents_app.stack",
        "agents_app.tasks",
    ),
    "verbs": (
        "agents_app.budgets",
        "agents_app.adoption",
        "agents_app.agent_signals",
        "agents_app.lock_signals",
        "agents_app.signal_replies",
        "agents_app.calls",
        "agents_app.causes",
        "agents_app.control",
        "agents_app.credentials",
        "agents_app.deliveries",
        "agents_app.dispatch",
        "agents_app.due",
        "agents_app.execute",
        "agents_app.firings",
        "agents_app.lease",
        "agents_app.logins",
        "agents_app.maintenance",
        "agents_app.messages",
        "agents_app.perform",
        "agents_app.preparation",
        "agents_app.notify_targets",
        "agents_app.removal",
        "agents_app.resealing",
        "agents_app.rules.actions",
        "agents_app.rules.commands",
        "agents_app.rules.decide",
        "agents_app.rules.doing",
        "agents_app.rules.holder",
        "agents_app.rules.listing",
        "agents_app.rules.outcome",
        "agents_app.rules.rehearse",
        "agents_app.rules.reload",
        "agents_app.rules.silence",
        "agents_app.rules.snapshot",
        "agents_app.rules.summons",
        "agents_app.rules.tick",
        "agents_app.schedule_keys",
        "agents_app.schedules",
        "agents_app.skills.sync",
        "agents_app.spares",
        "agents_app.tenants",
        "agents_app.tokens",
        "agents_app.webhook_sources",
        "agents_app.why",
        "agents_app.writ_watch",
        "agents_app.writs",
    ),
    "bookkeeping": (
        "agents_app.activity",
        "agents_app.credential_book",
        "agents_app.definition",
        "agents_app.delivery_rows",
        "agents_app.handover",
        "agents_app.journal",
        "agents_app.ledger",
        "agents_app.lifecycle",
        "agents_app.metric_totals",
        "agents_app.loans",
        "agents_app.locks",
        "agents_app.plan",
        "agents_app.printed",
        "agents_app.relay",
        "agents_app.run_rows",
        "agents_app.run_tokens",
        "agents_app.schedule_states",
        "agents_app.signal_files",
        "agents_app.slots",
        "agents_app.statements",
        "agents_app.tail",
        "agents_app.ties",
        "agents_app.transcript",
        "agents_app.webhook_book",
        "agents_app.webhook_trial",
    ),
    "rows": (
        "agents_app.bulk",
        "agents_app.commit",
        "agents_app.log_rows",
        "agents_app.models",
        "agents_app.rows",
    ),
    "pure": (
        "agents_app",
        "agents_app.agent_bin",
        "agents_app.ansi",
        "agents_app.conf",
        "agents_app.credential_types",
        "agents_app.disguises",
        "agents_app.environment",
        "agents_app.errors",
        "agents_app.gateway_socket",
        "agents_app.guard",
        "agents_app.harness",
        "agents_app.injection",
        "agents_app.job",
        "agents_app.lock_rules",
        "agents_app.log_lines",
        "agents_app.loopback",
        "agents_app.next_fires",
        "agents_app.notices",
        "agents_app.outgoing",
        "agents_app.outside",
        "agents_app.output",
        "agents_app.prompt",
        "agents_app.redacted_log",
        "agents_app.redaction",
        "agents_app.room",
        "agents_app.rules",
        "agents_app.run_statistics",
        "agents_app.runners",
        "agents_app.sealing",
        "agents_app.secret_key",
        "agents_app.signal_fields",
        "agents_app.skills",
        "agents_app.spans",
        "agents_app.spending",
        "agents_app.stack.private_files",
        "agents_app.summary",
        "agents_app.stack.redis_server",
        "agents_app.trace",
        "agents_app.stage",
        "agents_app.triggers",
        "agents_app.watching",
        "agents_app.webhooks",
    ),
}
DEPTH = {prefix: depth for depth, names in enumerate(LAYERS.values()) for prefix in names}
# The relay is the door to Celery, and Celery's application belongs to the project.
DOORS = {("agents_app.relay", "scheduler_project.celery")}
CELERY = {
    "agents_app.stack.serve",  # a worker or a beat that tells the supervisor when it is ready
    "agents_app.stack.monitor",  # starts Flower
    "agents_app.tasks",
    "scheduler_project.beat",
    "scheduler_project.celery",
    "scheduler_project.worker",
}


def prefix_of(name: str) -> str | None:
    fits = [prefix for prefix in DEPTH if name == prefix or name.startswith(f"{prefix}.")]
    return max(fits, key=len, default=None)


def depth_of(name: str) -> int:
    prefix = prefix_of(name)
    assert prefix is not None, f"{name} has no place in LAYERS: say what it is"
    return DEPTH[prefix]


def _ours(module: Module) -> list[tuple[str, int]]:
    return [(name, line) for name, line in module.imports if name.split(".")[0] in PACKAGES]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_nothing_imports_upwards(module: Module):
    wrong = [
        f"{module.at(line)}: {module.name} imports {imported}"
        for imported, line in _ours(module)
        if depth_of(imported) < depth_of(module.name) and (module.name, imported) not in DOORS
    ]
    assert wrong == []


def test_every_module_of_the_domain_has_a_place_of_its_own():
    """A new file directly in agents_app must say in LAYERS what it is."""
    lost = [
        module.name
        for module in modules("agents_app")
        if prefix_of(module.name) == "agents_app" and module.name != "agents_app"
    ]
    assert lost == []


def test_no_layer_names_a_module_that_is_gone():
    names = {module.name for module in modules()}
    gone = [
        prefix
        for prefix in DEPTH
        if not any(name == prefix or name.startswith(f"{prefix}.") for name in names)
    ]
    assert gone == []


def test_only_the_doors_to_celery_import_it():
    wrong = [
        module.at(line)
        for module in modules()
        for imported, line in module.imports
        if imported.split(".")[0] in {"celery", "kombu"} and module.name not in CELERY
    ]
    assert wrong == []


def test_pure_modules_do_not_know_django():
    pure = [module for module in modules("agents_app") if depth_of(module.name) == len(LAYERS) - 1]
    assert len(pure) > 30
    wrong = [
        module.at(line)
        for module in pure
        for imported, line in module.imports
        if imported.split(".")[0] in {"django", "celery", "redis", "psycopg"}
    ]
    assert wrong == []


def test_the_gateway_owns_no_tables():
    owners = [
        module.name
        for module in modules("gateway_app", "scheduler_project")
        if "models.Model" in module.text
    ]
    assert owners == []


def test_the_domain_knows_nothing_of_http():
    inner = [m for m in modules("agents_app") if depth_of(m.name) > 0]
    wrong = [
        module.at(line)
        for module in inner
        for imported, line in module.imports
        if imported.startswith(("django.http", "django.views", "django.shortcuts", "django.urls"))
    ]
    assert wrong == []
