// After the end of the session the response is the login page: reload instead of showing it in a panel.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.responseURL.includes("/login/")) {
    event.detail.shouldSwap = false;
    window.location.reload();
  }
});
