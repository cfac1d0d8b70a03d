"""The fields of SKILL.md and config.toml with their types and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from agents_app.notifications import FAILURES, Format
from agents_app.skills.fields import (
    Argv,
    CallbackUrl,
    ChannelId,
    Cpus,
    Credential,
    Dollars,
    DotPath,
    EventName,
    Few,
    Filter,
    HeaderName,
    HookEvents,
    HookUrl,
    Line,
    Memory,
    Model,
    Network,
    Paths,
    Port,
    Positive,
    RelativePath,
    Seconds,
    SecretRef,
    Slots,
    Texts,
    Tokens,
    UserName,
    Variable,
    VariableOrNone,
    VariableText,
    Whole,
    Word,
    Words,
    Zone,
    as_list,
)
from agents_app.triggers import Anchor, Gap, OverlapHour

Overlap = Literal["skip", "queue_one", "queue", "cancel_other"]
CatchUp = Literal["skip", "last", "all"]
HarnessName = Literal["claude-code", "codex", "shell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeSpec:
    type: Literal["process", "host-user", "container"] = "process"
    run_as: UserName = "drover-agent"
    image: str = ""
    memory: Memory = "4g"
    cpus: Cpus | None = None
    network: Network = "none"
    pids_limit: Positive = 1024
    shared_writable: bool = False
    pull: Literal["never", "missing"] = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a run on this host may reach, beside its own directories and the system's programs."""

    mode: Literal["auto", "required", "off"] = "auto"
    read: Paths = ()
    write: Paths = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpec:
    """Caps of one agent; sent, received and cached tokens all count."""

    tokens_per_run: Tokens | None = None
    usd_per_run: Dollars | None = None
    tokens_per_day: Tokens | None = None
    usd_per_day: Dollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectBudgetSpec:
    """Caps on all agents together."""

    tokens_per_month: Tokens | None = None
    usd_per_month: Dollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHookSpec:
    """What happens when a run has ended; `agents_app.skills.hooks` says which type uses a field.

    Headers and a URL may contain `${NAME}` for a variable of a declared credential."""

    type: Literal["shell", "webhook", "slack", "discord", "notify"]
    name: Line = ""
    command: str = ""
    url: HookUrl = ""
    method: Literal["POST", "PUT"] = "POST"
    headers: Mapping[HeaderName, str] = field(default_factory=dict)
    channel_id: ChannelId = ""
    bot_token_env: VariableOrNone = ""
    message: Line = ""
    timeout_seconds: Seconds | None = None
    on_events: HookEvents = ()
    when: DotPath = ""
    continue_on_error: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksSpec:
    pre: Texts = ()
    post: Texts = ()
    after_run: tuple[EventHookSpec, ...] = ()
    on_error: tuple[EventHookSpec, ...] = ()
    # Only for the requests of hooks; the program does not get them.
    credentials: tuple[Credential, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSpec:
    """The deliveries that start the agent; the provider defines the meaning of filters."""

    source: Word
    filters: Mapping[str, Filter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSourceSpec:
    """The kind defines the fields of `settings`, which stand beside `type` in files."""

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_columns(self) -> dict[str, Any]:
        return {"type": self.type, **self.settings}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """`expression` is a text for `parse_when`; without `timezone` the host's zone applies."""

    name: str
    expression: str
    prompt: str = ""
    work_source: WorkSourceSpec | None = None
    timezone: Zone | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    catch_up_window_seconds: Seconds = 3600.0
    jitter_percent: float = 0.0
    jitter_seconds: Seconds = 0.0
    gap: Gap = "shift"
    overlap_hour: OverlapHour = "first"
    anchor: Anchor | Literal[""] = ""
    pause_after_failures: Whole = 0
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent with the defaults of its project; `name` is that of its directory."""

    name: str
    instructions: str = ""
    source_path: Path = Path()
    schedules: tuple[ScheduleSpec, ...] = ()

    description: Line = ""
    command: Argv = ()
    harness: HarnessName | None = None
    model: Model = ""
    harness_args: Texts = ()
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    webhooks: tuple[WebhookSpec, ...] = ()
    work_source: WorkSourceSpec | None = None
    scale: Slots = 1
    timeout_seconds: Seconds = 900.0
    work_queue_size: Positive = 100
    max_reruns: Whole = 10
    credentials: tuple[Credential, ...] = ()
    runtime: RuntimeSpec = field(default_factory=RuntimeSpec)
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    env: Mapping[Variable, VariableText] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    hooks: HooksSpec = field(default_factory=HooksSpec)
    metadata_file: RelativePath = "metadata.json"
    on_lost: Literal["fail", "retry"] = "fail"
    retries: Few = 0
    max_call_depth: Few = 3
    timezone: Zone | None = None
    # Whether `/schedule` lines in its output create schedules; `drover schedule` always does.
    schedules_from_output: bool = True

    # How its runs receive messages: with `drover inbox`, or on standard input.
    messages: Literal["inbox", "stdin"] = "inbox"

    # Fields of the Agent Skills standard that have no effect in Drover.
    title: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: Words = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        return self.source_path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySpec:
    port: Port = 8080
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSpec:
    """Defaults of all agents; `image`, `memory` and `cpus` are those of `runtime`."""

    timeout_seconds: Seconds = 900.0
    image: str = ""
    memory: Memory | None = None
    cpus: Cpus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSourceSpec:
    """`options` are settings of the provider, such as the name of a header.

    `secrets` are references: `env:NAME`, or `file:path` below the project.
    """

    name: str
    type: Word
    secrets: Annotated[tuple[SecretRef, ...], BeforeValidator(as_list)] = ()
    credential: str = ""
    allow_unsigned: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySpec:
    """A notification target; `url` may also be a reference to a secret, like `secret`."""

    url: CallbackUrl
    on: Annotated[tuple[EventName, ...], BeforeValidator(as_list)] = FAILURES
    secret: SecretRef | None = None
    format: Format = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSpec:
    """The project's config.toml; without `scale` no cap applies, without `timezone` the host's."""

    command: Argv = ()
    harness: HarnessName | None = None
    budget: ProjectBudgetSpec = field(default_factory=ProjectBudgetSpec)
    image: str = ""
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    timezone: Zone | None = None
    scale: Slots | None = None
    default_agent_scale: Slots = 1
    max_reruns: Whole = 10
    max_call_depth: Few = 3
    work_queue_size: Positive = 100
    resource_lock_timeout_seconds: Seconds = 1800.0
    # None: as the default tenant, whose own default is 14.
    history_retention_days: Positive | None = None
    gateway: GatewaySpec = field(default_factory=GatewaySpec)
    local: LocalSpec = field(default_factory=LocalSpec)
    webhooks: tuple[WebhookSourceSpec, ...] = ()
    notify: tuple[NotifySpec, ...] = ()
