"""What pages ask for and complain about while a test looks at them."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request, Response


@dataclass
class Watch:
    """Of all pages of a test; one that expects a complaint takes it away."""

    home: str
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def over(self, page: Page) -> Page:
        page.on("request", self._request)
        page.on("response", self._response)
        page.on("console", self._console)
        page.on("pageerror", self._error)
        return page

    def take(self) -> list[str]:
        """What was complained about so far, and is now forgiven."""
        taken, self.complaints = self.complaints, []
        return taken

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc not in {self.home, ""}:
            self.foreign.append(request.url)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} {message.location['url']}")

    def _error(self, error: Error) -> None:
        self.complaints.append(str(error))
