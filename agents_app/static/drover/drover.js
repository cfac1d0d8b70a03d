// After the end of the session the response is the login page: reload instead of showing it in a panel.
// Once, because a second reload would abort the first.
let reloading = false;
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.responseURL.includes("/login/")) {
    event.detail.shouldSwap = false;
    if (!reloading) {
      reloading = true;
      window.location.reload();
    }
  }
});
