// Live lists: copies the attributes of #dv-live-list to the table, for live.js.
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
  // Selected rows must not move: skip the update before morph.js merges it.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target === table() && chosen()) event.detail.shouldSwap = false;
  }, true);
  document.addEventListener("htmx:afterRequest", (event) => {
    // The merged table comes from the server, without these attributes.
    if (event.target === table()) follow();
    // The first row of an empty list.
    if (event.target === wanted() && !("live" in wanted().dataset)) window.location.reload();
  });
})();
