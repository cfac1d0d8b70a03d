"""Records requests and errors of pages during a test."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request, Response


@dataclass
class Watch:
    """The records of all pages of a test; a test that expects an error takes it from the list."""

    home: str
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> Page:
        page.on("request", self._request)
        page.on("response", self._response)
        page.on("console", self._console)
        page.on("pageerror", self._error)
        return page

    def take(self) -> list[str]:
        """Return the errors so far and remove them from the list."""
        taken, self.errors = self.errors, []
        return taken

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc not in {self.home, ""}:
            self.foreign.append(request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.errors.append(f"{response.status} {response.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(f"{message.type}: {message.text} {message.location['url']}")

    def _error(self, error: Error) -> None:
        self.errors.append(str(error))
