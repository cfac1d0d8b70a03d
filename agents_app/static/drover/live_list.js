// A list of the admin follows the fleet: what #dv-live-list names is handed to its table, for live.js.
(() => {
  const wanted = () => document.getElementById("dv-live-list");
  const table = () => document.getElementById("result_list");
  const chosen = () => document.querySelector("#result_list input.action-select:checked");

  function follow() {
    if (!wanted() || !table()) return;
    Object.assign(table().dataset, { live: wanted().dataset.events, liveTick: "10" });
    table().setAttribute("hx-get", window.location.href);
    table().setAttribute("hx-select", "#result_list");
    table().setAttribute("hx-trigger", "live");
    window.htmx.process(table());
  }

  document.addEventListener("DOMContentLoaded", follow);
  // Rows must not move below a choice that somebody has made. Asked first, before anything merges.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target === table() && chosen()) event.detail.shouldSwap = false;
  }, true);
  // What was merged came from the server, which knows nothing of these attributes.
  document.addEventListener("htmx:afterRequest", (event) => event.target === table() && follow());
})();
