"""How log lines look: JSON for machines and files, colours for people at a terminal."""

import logging.config
from pathlib import Path
from typing import Any

import structlog

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def logging_settings(log_format: str, data: Path, role: str) -> dict[str, Any]:
    """Sets structlog up at once, and gives the dictionary for the standard library's part."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    settings = _settings(log_format)
    if role:
        _add_file(settings, data / "logs" / f"{role}.log")
    logging.config.dictConfig(settings)
    return settings


def _settings(log_format: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": _formatter(structlog.processors.JSONRenderer()),
            "human": _formatter(structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)),
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # Celery says much at INFO that is about itself; its warnings are about us.
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "django_celery_beat": {"level": "WARNING"},
            "watchfiles": {"level": "WARNING"},
        },
    }


def _formatter(renderer: Any) -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _SHARED,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    }


def _add_file(settings: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    settings["handlers"]["file"] = {
        "class": "logging.handlers.RotatingFileHandler",
        "formatter": "json",
        "filename": str(path),
        "maxBytes": 10_000_000,
        "backupCount": 5,
        "delay": True,
    }
    settings["root"]["handlers"].append("file")
