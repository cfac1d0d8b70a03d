"""Projects on a real disk, private to each test."""

from pathlib import Path

import pytest


class ProjectDirectory:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def add_agent(self, name: str, frontmatter: str = "command: 'true'", under: str = "agents"):
        return self.write(f"{under}/{name}/SKILL.md", f"---\n{frontmatter}\n---\nWork.\n")


@pytest.fixture
def on_disk(tmp_path: Path) -> ProjectDirectory:
    root = tmp_path / "project"
    root.mkdir()
    return ProjectDirectory(root)
