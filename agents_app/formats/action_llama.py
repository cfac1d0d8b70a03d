"""Fields of Action Llama in SKILL.md and config.toml, in terms of Drover's own."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_app.formats.herdctl.merge import merge_documents
from agents_app.formats.report import ReportLine
from agents_app.harness import HARNESSES
from agents_app.names import canonical, unknown_field
from agents_app.skills import (
    Document,
    KeyPath,
    Layer,
    SkillError,
    SourcePlace,
    SourceText,
    did_you_mean,
    dotted,
    excerpt,
    read_source,
    read_toml,
)

ENVIRONMENT_FILE = ".env.toml"
ENVIRONMENTS = Path(".action-llama") / "environments"
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# The key of metadata for values that Drover keeps and does not honour yet.
KEPT = "action-llama"
_CREDENTIAL_KEY = re.compile(r"[a-z0-9_]+_(?:secret|key|token)")
_HARNESS_OF_PROVIDER = {"anthropic": "claude-code", "openai": "codex"}
_WITHOUT_HARNESS = "claude-code"
_MODEL_FIELDS = ("provider", "model", "auth_type", "thinking_level", "base_url")
_NO_WAIT = ("a run starts when a slot is free, however long that takes", "remove the field")
_NO_SSH = ("Drover has no runtime on other machines", "install Drover there, or use `process`")

# Fields that are known and not honoured: why, and what to do.
_AGENT_REPORT = {"wait_timeout": _NO_WAIT}
_RUNTIME_REPORT = {
    "groups": ("a host-user run has the groups of its user", "add the user to the groups"),
    **dict.fromkeys(("host", "port", "user", "key_path", "cwd", "ssh_options"), _NO_SSH),
}
_PROJECT_REPORT = {
    "default_wait_timeout": _NO_WAIT,
    "telemetry": ("Drover sends no traces", "read its metrics at /metrics"),
    "server": ("Drover does not install itself on servers", "see Install in the documentation"),
    "cloud": ("Drover does not install itself in a cloud", "see Install in the documentation"),
}
_MODEL_REPORT = {
    "thinking_level": ("is not passed on", "set harness_args of the agent"),
    "base_url": ("is not passed on", "set ANTHROPIC_BASE_URL or OPENAI_BASE_URL under `env`"),
}


class ActionLlama:
    """Translates the files of one project; it collects the report while they are read."""

    agent_fields = frozenset({"models", "wait_timeout"})

    def __init__(self, root: Path, server: Mapping[str, str]) -> None:
        self.root = root
        self.server = server
        self.report: list[ReportLine] = []
        # Read outside of the project, or missing.
        self.files: list[Path] = []
        self.models: dict[str, dict[str, Any]] = {}
        self.is_used = False

    # --- config.toml ----------------------------------------------------------------------------

    def project(self, layer: Layer) -> Document:
        """config.toml, .env.toml and the file of the environment, with the fields of Drover."""
        document = self._with_environment(layer.document)
        layer = Layer(document, layer.problems)
        data = self._without(document, _PROJECT_REPORT, ())
        self.models = self._models(data.pop("models", None), layer)
        if isinstance(webhooks := data.get("webhooks"), dict):
            data["webhooks"] = {name: self._webhook(table) for name, table in webhooks.items()}
        return Document(document.source, data, document.places)

    def _with_environment(self, config: Document) -> Document:
        source = read_source(self.root, self.root / ENVIRONMENT_FILE)
        if source:
            config = merge_documents(config, read_toml(source))
            self.is_used = True
        data = dict(config.data)
        chosen = self.server.get("AL_ENV") or data.get("environment")
        if "environment" in data:
            del data["environment"]
            self.is_used = True
        config = Document(config.source, data, config.places)
        return merge_documents(config, self._environment(chosen)) if chosen else config

    def _environment(self, name: Any) -> Document:
        """The file of an environment in the home directory."""
        place = SourcePlace(ENVIRONMENT_FILE)
        if not isinstance(name, str) or not _ENVIRONMENT_NAME.fullmatch(name):
            raise SkillError(f"environment: {excerpt(name)} is not the name of a file", place)
        home = Path(self.server.get("HOME") or Path.home())
        directory = home / ENVIRONMENTS
        path = directory / f"{name}.toml"
        label = f"~/{ENVIRONMENTS.as_posix()}/{name}.toml"
        self.files.append(path)
        try:
            source = read_source(directory.resolve(), directory.resolve() / path.name)
        except SkillError as error:
            raise SkillError(error.reason, SourcePlace(label, error.line)) from None
        if source is None:
            self._add(label, 0, "", "the file of the environment does not exist", "create it")
            return Document(label)
        return read_toml(SourceText(source.text, path, label))

    def _models(self, tables: Any, layer: Layer) -> dict[str, dict[str, Any]]:
        if tables is None:
            return {}
        self.is_used = True
        if not isinstance(tables, dict):
            layer.report(("models",), f"must be a table of models, not {excerpt(tables)}")
            return {}
        return {name: self._model(name, table, layer) for name, table in tables.items()}

    def _model(self, name: str, table: Any, layer: Layer) -> dict[str, Any]:
        at: KeyPath = ("models", name)
        if not isinstance(table, dict):
            layer.report(at, f"must be a table, not {excerpt(table)}")
            return {}
        for key in table:
            if canonical(key) not in _MODEL_FIELDS:
                layer.report((*at, key), unknown_field(key, _MODEL_FIELDS))
        for field in ("provider", "model"):
            if not isinstance(table.get(field), str):
                layer.report((*at, field), f"must be text, not {excerpt(table.get(field))}")
        self._without(layer.document, _MODEL_REPORT, at, table)
        return table

    @staticmethod
    def _webhook(table: Any) -> Any:
        """`github_webhook_secret = "main"` names the credential of the source."""
        if not isinstance(table, dict):
            return table
        keys = [key for key in table if _CREDENTIAL_KEY.fullmatch(canonical(key))]
        named = {key: table[key] for key in keys if isinstance(table[key], str)}
        if len(named) != 1 or "credential" in table:
            return table
        ((key, instance),) = named.items()
        rest = {other: value for other, value in table.items() if other != key}
        return {**rest, "credential": f"{canonical(key)}:{instance}"}

    # --- agents ---------------------------------------------------------------------------------

    def agent(self, layer: Layer) -> Document:
        document = layer.document
        data = self._without(document, _AGENT_REPORT, ())
        if "source" in data:
            self.is_used = True
            kept = data.get("metadata") or {}
            source = data.pop("source")
            data["metadata"] = {**kept, "source": source} if isinstance(kept, dict) else kept
        harness = data.get("harness")
        if isinstance(harness, dict) and set(harness) <= {"type"}:
            # `pi` means the harness of the model's provider.
            self.is_used = True
            data |= {"harness": None if harness.get("type") == "pi" else harness.get("type")}
        if isinstance(runtime := data.get("runtime"), dict):
            data["runtime"] = self._without(document, _RUNTIME_REPORT, ("runtime",), runtime)
        return Document(document.source, data, document.places)

    def merged_agent(self, layer: Layer) -> Document:
        """Choose harness and model by the first of `models`; an ssh agent must not run here."""
        data = dict(layer.document.data)
        runtime = data.get("runtime")
        if isinstance(runtime, dict) and runtime.get("type") == "ssh":
            self.is_used = True
            why, advice = _NO_SSH
            self._say(layer.document, ("runtime", "type"), f"{why}; the scale is 0", advice)
            data |= {"runtime": {**runtime, "type": "process"}, "scale": 0}
        names = data.pop("models", None)
        if names is not None:
            self.is_used = True
            data |= self._choice(names, data, layer)
        return Document(layer.document.source, data, layer.document.places)

    def _choice(self, names: Any, data: dict[str, Any], layer: Layer) -> dict[str, Any]:
        at: KeyPath = ("models",)
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            layer.report(at, f"must be a list of names of models, not {excerpt(names)}")
            return {}
        for name in names:
            if name not in self.models:
                hint = did_you_mean(name, self.models)
                layer.report(at, f"config.toml has no [models.{name}]{hint}")
        if not names or any(name not in self.models for name in names):
            return {}
        if data.get("command"):
            self._say(layer.document, at, "`command` decides what runs", "remove one of them")
            return {}
        kept: dict[str, Any] = {}
        if len(names) > 1:
            why = f"is honoured for {names[0]} only: fallback models are not honoured yet"
            advice = "Drover keeps the models with the agent; limit the usage with `budget`"
            self._say(layer.document, at, why, advice)
            kept = {"metadata": self._with_kept_models(names, data.get("metadata"))}
        return {**self._program(self.models[names[0]], data, layer.document), **kept}

    def _with_kept_models(self, names: list[str], metadata: Any) -> Any:
        """The metadata of the agent with its models in their order, the first of which is used."""
        if metadata is not None and not isinstance(metadata, dict):
            return metadata
        models = [{"name": name, **self.models[name]} for name in names]
        return {**(metadata or {}), KEPT: {"models": models}}

    def _program(
        self, model: dict[str, Any], data: dict[str, Any], document: Document
    ) -> dict[str, Any]:
        provider = str(model.get("provider"))
        named = provider if provider in HARNESSES else None
        harness = data.get("harness") or _HARNESS_OF_PROVIDER.get(provider) or named
        if harness is None:
            why = f"no harness runs models of {provider!r}; the scale is 0"
            self._say(document, ("models",), why, "set `harness` or `command` of the agent")
            return {"harness": _WITHOUT_HARNESS, "scale": 0}
        known = HARNESSES.get(harness)
        takes_model = known is None or known.takes_model
        own = data.get("model") or (model.get("model") if takes_model else None)
        return {"harness": harness, **({"model": own} if own else {})}

    # --- the report -----------------------------------------------------------------------------

    def _without(
        self,
        document: Document,
        known: Mapping[str, tuple[str, str]],
        at: KeyPath,
        table: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The table without the known fields, which are reported."""
        kept = {}
        for key, value in (document.data if table is None else table).items():
            if canonical(key) in known:
                self.is_used = True
                self._say(document, (*at, key), *known[canonical(key)])
            else:
                kept[key] = value
        return kept

    def _say(self, document: Document, at: KeyPath, why: str, advice: str) -> None:
        place = document.place(at)
        self._add(place.path, place.line or 0, dotted(at), why, advice)

    def _add(self, file: str, line: int, field: str, why: str, advice: str) -> None:
        self.report.append(ReportLine(file, line, field, why, advice))
