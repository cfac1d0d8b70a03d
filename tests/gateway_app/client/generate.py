"""Builds the wheel of the typed client from the OpenAPI document: `make client`."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agents_app import __version__
from agents_app.conf import ROOT

DOCUMENT = ROOT / "docs" / "reference" / "openapi.json"
PACKAGE = "drover_client"
CONFIG = {
    "package_name_override": PACKAGE,
    # The code is in a wheel that users do not edit: formatting it takes most of the time.
    "post_hooks": [],
    # One JSON object per line: the client returns the text.
    "content_type_overrides": {"application/x-ndjson": "text/plain"},
}
PYPROJECT = """\
[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"

[project]
name = "drover-client"
version = "{version}"
description = "Typed client of Drover's API, generated from its OpenAPI document."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["attrs>=22.2", "httpx>=0.23.1,<0.29", "python-dateutil>=2.8"]

[tool.flit.module]
name = "{package}"
"""
README = """\
# drover-client

A typed client of Drover's API, synchronous and asynchronous. It is generated from the OpenAPI
document of Drover {version}; do not edit it.
"""


def build_client(target: Path) -> Path:
    """Generate the client and put its wheel into a directory; returns the wheel."""
    with tempfile.TemporaryDirectory(prefix="drover-client-") as made:
        source = Path(made) / "source"
        source.mkdir()
        _generate(Path(made), source / PACKAGE)
        _write_project(source)
        target.mkdir(parents=True, exist_ok=True)
        return target.resolve() / _build_wheel(source, target.resolve())


def _generate(directory: Path, package: Path) -> None:
    """Also a warning is an error: a part of the document would be missing in the client."""
    config, document = directory / "config.json", directory / "openapi.json"
    config.write_text(json.dumps(CONFIG))
    document.write_text(json.dumps(_without_default_bodies(json.loads(DOCUMENT.read_text()))))
    arguments = ("--meta", "none", "--path", str(document), "--output-path", str(package))
    generator = [sys.executable, "-m", "openapi_python_client", "generate"]
    subprocess.run(
        [*generator, *arguments, "--config", str(config), "--fail-on-warning"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=directory,
    )


def _without_default_bodies(document: dict[str, Any]) -> dict[str, Any]:
    """The generator knows no default of an object; without a body the server uses the default."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                if "default" in content["schema"]:
                    (content["schema"],) = content["schema"]["allOf"]
    return document


def _write_project(source: Path) -> None:
    (source / "pyproject.toml").write_text(PYPROJECT.format(version=__version__, package=PACKAGE))
    (source / PACKAGE / "py.typed").touch()
    (source / "README.md").write_text(README.format(version=__version__))


def _build_wheel(source: Path, target: Path) -> str:
    """The name of the wheel. The backend works in the current directory: it gets a process."""
    code = "import sys; from flit_core.buildapi import build_wheel; print(build_wheel(sys.argv[1]))"
    argv = [sys.executable, "-c", code, str(target)]
    done = subprocess.run(argv, cwd=source, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    print(build_client(Path(sys.argv[1])))
