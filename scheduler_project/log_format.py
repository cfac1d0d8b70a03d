"""How log lines look: JSON for machines and files, colours for people at a terminal."""

import logging.config
from pathlib import Path
from typing import Any

import structlog

from agents_app.conf import Conf
from agents_app.redaction import clean_line

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def logging_settings(conf: Conf, role: str) -> dict[str, Any]:
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
    # Nothing here prints them, and finding them out for every line is not free.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    settings = _settings(conf.log_format, conf.log_level.upper())
    if role:
        _add_file(settings, conf.data / "logs" / f"{role}.log")
    logging.config.dictConfig(settings)
    return settings


def _settings(log_format: str, level: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": _formatter(structlog.processors.JSONRenderer()),
            "human": _formatter(structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)),
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Celery says much at INFO that is about itself; its warnings are about us.
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "django_celery_beat": {"level": "WARNING"},
            "watchfiles": {"level": "WARNING"},
            # They say whom they call, and such an address may hold a secret.
            "httpcore": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
        },
    }


def _formatter(renderer: Any) -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            renderer,
            _without_secrets,
        ],
    }


def _without_secrets(_logger: Any, _method: str, line: str) -> str:
    """Last, on the line as it is written: whatever a value was part of, it is text by now."""
    return clean_line(line)


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
