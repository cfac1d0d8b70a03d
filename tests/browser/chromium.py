"""A real Chromium, and the login to the admin; independent of pytest."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

# This list replaces the list of Playwright, which it repeats. The last two are pages of the address
# bar: Chromium loads them for every window, which takes it longer than to load a page of Drover.
FEATURES_OFF = [
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect"),
    *("OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
]
# Chromium must send no requests of its own: the tests count every request.
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(FEATURES_OFF)}",
]


def chromium_path() -> Path | None:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return Path(found) if found else None


@contextmanager
def chromium(path: Path) -> Iterator[Browser]:
    # An earlier supervisor in this process may have left a child watcher of a closed loop.
    asyncio.set_event_loop_policy(None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def log_in(page: Page, url: str, user: str, password: str) -> None:
    page.goto(f"{url}/admin/")
    page.fill("#id_username", user)
    page.fill("#id_password", password)
    page.click("button[type=submit]")
    page.wait_for_selector("#fleet")
