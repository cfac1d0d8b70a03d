"""A picture of the overview: python tests/browser/take_screenshot.py URL USER OUT.png

The password is read from DROVER_ADMIN_PASSWORD, or asked for; --look dark takes the dark one.
"""

import argparse
import getpass
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.browser.chromium import chromium, chromium_path, log_in

WIDTH, HEIGHT = 1280, 800


def take_screenshot(url: str, user: str, password: str, out: Path, look: str, path: str) -> None:
    executable = chromium_path()
    if executable is None:
        sys.exit("chromium is missing; install it with: apt install chromium")
    with chromium(executable) as browser:
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="dark" if look == "dark" else "light",
        )
        log_in(page, url.rstrip("/"), user, password)
        if path:
            page.goto(f"{url.rstrip('/')}/{path.lstrip('/')}")
        page.wait_for_load_state("load")
        page.evaluate("document.fonts.ready")
        # As high as the page: on a full-page picture the sidebar would end too early.
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": WIDTH, "height": max(HEIGHT, height)})
        page.screenshot(path=out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="where Drover is, such as http://127.0.0.1:8080")
    parser.add_argument("user")
    parser.add_argument("out", type=Path)
    parser.add_argument("--look", choices=["light", "dark"], default="light")
    parser.add_argument("--path", default="", help="another page than the overview")
    wanted = parser.parse_args()
    password = os.environ.get("DROVER_ADMIN_PASSWORD") or getpass.getpass()
    take_screenshot(wanted.url, wanted.user, password, wanted.out, wanted.look, wanted.path)


if __name__ == "__main__":
    main()
