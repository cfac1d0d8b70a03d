"""Reads Action Llama's directory of credentials: a file TYPE/INSTANCE/FIELD for each field.

No message contains a part of a value.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.conf import PROGRAM
from agents_app.errors import NotFound, Refused
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import bytes_of, printable
from agents_app.secrets import VALUE, Name, parse_name, type_of

# Where Action Llama keeps it, below the home directory.
DIRECTORY = Path(".action-llama") / "credentials"
MAX_BYTES = 100_000
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
_NO_CREDENTIAL = "is no credential: expected TYPE/INSTANCE/FIELD"
# Fields that have another name in Drover.
_FIELDS = {
    "aws": {"default_region": "region"},
    "git_ssh": {"id_rsa": VALUE},
    "gcp_service_account": {"key_json": VALUE},
}
# Names of the secret of a type that has one text in Drover.
_NAMES_OF_VALUE = ("token", "secret", "key", "api_key", "id_rsa", VALUE)
# Variables that a run of Action Llama gets, where they differ from those of Drover.
_VARIABLES = {
    "linear_token": "LINEAR_API_TOKEN",
    "bugsnag_token": "BUGSNAG_AUTH_TOKEN",
    "netlify_token": "NETLIFY_AUTH_TOKEN",
    "mintlify_token": "MINTLIFY_API_TOKEN",
    "gcp_service_account": "GOOGLE_APPLICATION_CREDENTIALS_JSON",
}
# Types that only Action Llama itself uses.
_UNUSED = {
    "gateway_api_key": f"create a token with `{PROGRAM} token create`",
}


@dataclass(frozen=True, slots=True)
class FoundCredential:
    """The values by field of Drover; `path` is that of the instance in the directory."""

    name: Name
    path: str
    values: Mapping[str, str] = field(repr=False)


@dataclass(slots=True)
class CredentialDirectory:
    """The credentials of a directory; `errors` are files that were left out."""

    root: Path
    credentials: list[FoundCredential] = field(default_factory=list)
    report: list[ReportLine] = field(default_factory=list)
    errors: list[ReportLine] = field(default_factory=list)

    def remark(self, path: str, name: str, why: str, advice: str) -> None:
        self.report.append(ReportLine(path, 0, name, why, advice))

    def refuse(self, path: str, name: str, why: str, advice: str) -> None:
        self.errors.append(ReportLine(path, 0, name, why, advice))


def read_credentials(directory: Path) -> CredentialDirectory:
    """Read every credential; files that are none are reported. Raises if there is no directory."""
    if not directory.is_dir():
        raise NotFound(f"{directory} is not a directory; name that of the credentials")
    found = CredentialDirectory(Path(os.path.realpath(directory)))
    for kind in _directories(found, found.root):
        if advice := _UNUSED.get(kind.name):
            found.remark(_label(found, kind), "type", "is of no use in Drover; left out", advice)
            continue
        for instance in _directories(found, kind):
            _read_instance(found, kind.name, instance)
    return found


def _directories(found: CredentialDirectory, parent: Path) -> Iterator[Path]:
    """The directories below; everything else is reported."""
    for path in _listed(found, parent):
        if not Path(os.path.realpath(path)).is_relative_to(found.root):
            _refuse_link(found, path)
        elif path.is_dir():
            yield path
        else:
            found.remark(_label(found, path), "file", _NO_CREDENTIAL, "nothing, or move it there")


def _listed(found: CredentialDirectory, directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError as error:
        why = f"cannot be listed: {error.strerror}"
        found.refuse(_label(found, directory), "directory", why, "make it readable")
        return []


def _refuse_link(found: CredentialDirectory, path: Path) -> None:
    why = "is a symlink out of the directory"
    found.refuse(_label(found, path), "file", why, "copy the file instead")


# --- one credential -------------------------------------------------------------------------


def _read_instance(found: CredentialDirectory, kind: str, directory: Path) -> None:
    label = _label(found, directory)
    try:
        name = parse_name(f"{kind}:{directory.name}")
    except Refused:
        why = "is not a valid name of a credential of Drover"
        found.refuse(label, "name", why, "rename the directory to letters, digits, '.', '_', '-'")
        return
    before = len(found.errors)
    texts = {path.name: text for path, text in _texts(found, directory)}
    if len(found.errors) > before:
        return  # a credential without one of its fields would replace a complete one
    if not texts:
        found.remark(label, "directory", "has no fields", "nothing")
        return
    values = _values(found, name, label, texts)
    if values is not None:
        _remark_variable(found, name, label)
        found.credentials.append(FoundCredential(name, label, values))


def _texts(found: CredentialDirectory, directory: Path) -> Iterator[tuple[Path, str]]:
    for path in _listed(found, directory):
        label = _label(found, path)
        if path.name.startswith(".") or (path.is_dir() and not path.is_symlink()):
            found.remark(label, "file", _NO_CREDENTIAL, "nothing, or move it there")
            continue
        if not Path(os.path.realpath(path)).is_relative_to(found.root):
            _refuse_link(found, path)
            continue
        text = _text(found, path, label)
        if text is not None:
            yield path, text


def _text(found: CredentialDirectory, path: Path, label: str) -> str | None:
    """The content of a file; None after an error, or if it is empty."""
    try:
        mode = path.stat().st_mode
        data = bytes_of(found.root, path, is_named=False)
        text = data.decode() if len(data) <= MAX_BYTES else None
    except UnicodeDecodeError:
        found.refuse(label, "file", "is not UTF-8 text", "encode it, for example with base64")
        return None
    except (OSError, Refused) as error:
        said = error.strerror or "it failed" if isinstance(error, OSError) else str(error)
        found.refuse(label, "file", f"cannot be read: {said}", "make it a readable file")
        return None
    if text is None:
        found.refuse(label, "file", f"has more than {MAX_BYTES} bytes", "store a shorter value")
        return None
    if mode & _OTHERS_READ:
        why = f"other users of this machine may read it (mode {stat.S_IMODE(mode):04o})"
        found.remark(label, "mode", why, "chmod 600, and replace the secret if they had access")
    if not text.strip():
        found.remark(label, "file", "is empty; left out", "nothing")
        return None
    return text


def _values(
    found: CredentialDirectory, name: Name, label: str, texts: Mapping[str, str]
) -> dict[str, str] | None:
    """The values with the names of Drover's fields; other fields are reported."""
    known = type_of(name.type).fields
    aliases = _FIELDS.get(name.type, {})
    values = {aliases.get(file, file): text for file, text in texts.items()}
    if VALUE in known and VALUE not in values:
        chosen = _file_of_value(texts, known.keys())
        if chosen is None:
            why = f"has several fields ({', '.join(sorted(texts))}), and Drover has one text for it"
            advice = f"set each of them as a credential of its own: `{PROGRAM} credential set NAME`"
            found.refuse(label, "type", why, advice)
            return None
        values[VALUE] = values.pop(chosen)
    for field_name in sorted(values.keys() - known.keys()):
        why = f"the type {name.type} has no such field in Drover; left out"
        found.remark(label, printable(field_name), why, f"its fields are {', '.join(known)}")
    return {key: text for key, text in values.items() if key in known}


def _file_of_value(texts: Mapping[str, str], known: Collection[str]) -> str | None:
    """The file with the secret, if there is no doubt."""
    others = [name for name in texts if name not in known]
    named = [name for name in others if name in _NAMES_OF_VALUE]
    candidates = others if len(others) == 1 else named
    return candidates[0] if len(candidates) == 1 else None


def _remark_variable(found: CredentialDirectory, name: Name, label: str) -> None:
    old = _VARIABLES.get(name.type)
    if old is None:
        return
    kind = type_of(name.type)
    new = [*kind.file_variables, *(one for each in kind.fields.values() for one in each.variables)]
    why = f"a run of Action Llama has it in {old}, and a run of Drover in {', '.join(new)}"
    found.remark(label, "variable", why, "use that variable in the instructions of agents")


def _label(found: CredentialDirectory, path: Path) -> str:
    return printable(path.relative_to(found.root).as_posix())
