"""`make dist`: the sdist, the wheel and the list of components in dist/, each checked."""

import filecmp
import sys
import tempfile
from pathlib import Path

from agents_app.conf import ROOT
from tests.distribution.build import build, check_metadata, install, write_sbom
from tests.distribution.serve import InstalledDrover


def main() -> None:
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    built = build(dist)
    check_metadata(built)
    with tempfile.TemporaryDirectory(prefix="drover-dist-") as name:
        directory = Path(name)
        again = build(directory / "again")
        for one, other in ((built.sdist, again.sdist), (built.wheel, again.wheel)):
            if not filecmp.cmp(one, other, shallow=False):
                sys.exit(f"{one.name}: two builds have different bytes")
        installed = InstalledDrover(install(built.wheel, directory / "env"), directory)
        with installed.up():
            done = installed.run("run", "greeter", "--wait")
            if done.returncode or "Hello from run" not in done.stdout:
                sys.exit(f"the installed Drover ran no agent: {done.stdout}{done.stderr}")
    for path in (built.sdist, built.wheel, write_sbom(dist)):
        print(f"{path.stat().st_size:>9}  {path.relative_to(ROOT)}")


main()
