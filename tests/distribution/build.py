"""Builds the sdist and the wheel, checks them, and writes the list of components."""

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from agents_app import __version__
from agents_app.conf import ROOT

SBOM = f"drover_fleet-{__version__}.cdx.json"


@dataclass(frozen=True, slots=True)
class Built:
    sdist: Path
    wheel: Path


def build(target: Path) -> Built:
    """The distributions of this checkout, by the time of its last commit."""
    last_commit = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(last_commit, capture_output=True, text=True, check=True)
    env = {**os.environ, "SOURCE_DATE_EPOCH": done.stdout.strip()}
    # Without isolation: the backend is that of requirements-dev.lock.
    _python("-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT), env=env)
    stem = f"drover_fleet-{__version__}"
    return Built(target / f"{stem}.tar.gz", target / f"{stem}-py3-none-any.whl")


def check_metadata(built: Built) -> None:
    _python("-m", "twine", "check", "--strict", str(built.sdist), str(built.wheel))


def write_sbom(target: Path) -> Path:
    """The packages of requirements.lock with versions and hashes, as CycloneDX."""
    path = target / SBOM
    lock, project = str(ROOT / "requirements.lock"), str(ROOT / "pyproject.toml")
    options = ("--pyproject", project, "--mc-type", "application", "--output-reproducible")
    written = ("--output-format", "JSON", "--output-file", str(path))
    _python("-m", "cyclonedx_py", "requirements", *options, *written, lock)
    _name_release(path)
    return path


def _name_release(sbom: Path) -> None:
    """Add what the tool cannot know: the version, which is not in pyproject.toml, and that Drover
    needs the packages of the lock."""
    document = json.loads(sbom.read_text())
    main = document["metadata"]["component"]
    main |= {"version": __version__, "purl": f"pkg:pypi/drover-fleet@{__version__}"}
    needed = sorted(each["bom-ref"] for each in document["components"])
    for each in document["dependencies"]:
        if each["ref"] == main["bom-ref"]:
            each["dependsOn"] = needed
    sbom.write_text(json.dumps(document, indent=2) + "\n")


def install(wheel: Path, directory: Path, *, shared: bool = False) -> Path:
    """A new environment with the wheel and the versions of the lock; returns its `bin`.

    `shared`: the other packages are those of this environment, which takes a minute less."""
    _python("-m", "venv", str(directory))
    python = str(directory / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if shared:
        (own,) = directory.glob("lib/python*/site-packages")
        (own / "shared.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    else:
        subprocess.run([*pip, "-r", str(ROOT / "requirements.lock")], check=True)
    # Without --no-deps: what the wheel asks for and the lock lacks would be missed otherwise.
    subprocess.run([*pip, "--no-index", str(wheel)], check=True)
    return directory / "bin"


def _python(*arguments: str, env: dict[str, str] | None = None) -> None:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments[:3])} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
