// A session that ended answers with the login page: go there instead of showing it in a panel.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.responseURL.includes("/login/")) {
    event.detail.shouldSwap = false;
    window.location.reload();
  }
});
