"""Configuration of logging: JSON for files and programs, readable lines for a terminal."""

import json
import logging.config
import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import structlog

from agents_app.conf import Conf
from agents_app.installation import create_private_directory, open_private_file
from agents_app.redaction import clean_line

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


# The roles of a program that uses agents_app.scheduler, and of the worker process below it.
EMBEDDED, EMBEDDED_WORKER = "embedded", "worker-embedded"


class PrivateLogFile(logging.handlers.RotatingFileHandler):
    """A log file that only this user may read, whatever the umask."""

    def _open(self) -> TextIOWrapper:
        os.close(open_private_file(Path(self.baseFilename)))
        return super()._open()

    def shouldRollover(self, _record: logging.LogRecord) -> bool:  # noqa: N802
        """The inherited method asks the file system twice for every line."""
        if self.stream is None:
            self.stream = self._open()
        # The position of a file that is opened for appending is its end after each line.
        return self.maxBytes > 0 and self.stream.tell() >= self.maxBytes


class JsonFormatter(structlog.stdlib.ProcessorFormatter):
    """Renders a line once, although two handlers write it and one asks for it twice."""

    def format(self, record: logging.LogRecord) -> str:
        line: str | None = record.__dict__.get("json_line")
        if line is None:
            # The processors of structlog have made a dictionary of it, with everything in it.
            own = type(record.msg) is dict
            line = clean_line(_as_json(record.msg)) if own else super().format(record)
            record.json_line = line
        return line


def logging_settings(conf: Conf, role: str) -> dict[str, Any]:
    """Configures structlog and logging; returns the settings of logging."""
    if role == EMBEDDED:
        _configure_embedded()
        return {}
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
    # No formatter prints these values, and collecting them costs time for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    settings = _settings(conf.log_format, conf.log_level.upper())
    if role:
        _add_file(settings, conf.data / "logs" / f"{role}.log")
    if role == EMBEDDED_WORKER:
        # Its standard error is a file for messages that come before this configuration.
        settings["root"]["handlers"] = ["file"]
    logging.config.dictConfig(settings)
    return settings


def _configure_embedded() -> None:
    """Log lines are texts of the loggers `drover.*`; handlers and levels are the program's."""
    processors: list[Any] = [
        structlog.stdlib.filter_by_level,
        structlog.contextvars.merge_contextvars,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["event"]),
        _without_secrets,
    ]
    structlog.configure(
        processors=processors,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _settings(log_format: str, level: str) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {"()": JsonFormatter} | _chain(structlog.processors.JSONRenderer(_as_json)),
            "human": {"()": structlog.stdlib.ProcessorFormatter}
            | _chain(structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)),
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # At INFO these libraries log only their own internals.
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "django_celery_beat": {"level": "WARNING"},
            "watchfiles": {"level": "WARNING"},
            # They log the URLs of requests, which may contain secrets.
            "httpcore": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
        },
    }


def _chain(renderer: Any) -> dict[str, Any]:
    return {
        "foreign_pre_chain": _SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            renderer,
            _without_secrets,
        ],
    }


# Made once: json.dumps makes an encoder for every line.
_encode = json.JSONEncoder(default=repr).encode


def _as_json(event: Any, **_options: Any) -> str:
    return _encode(event)


def _without_secrets(_logger: Any, _method: str, line: str) -> str:
    """The last processor: removes secrets from the line as it is written."""
    return clean_line(line)


def _add_file(settings: dict[str, Any], path: Path) -> None:
    create_private_directory(path.parent)
    settings["handlers"]["file"] = {
        "class": "scheduler_project.log_format.PrivateLogFile",
        "formatter": "json",
        "filename": str(path),
        "maxBytes": 10_000_000,
        "backupCount": 5,
        "delay": True,
    }
    settings["root"]["handlers"].append("file")
