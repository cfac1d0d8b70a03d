/* The page follows the fleet: one stream of events a page, and whatever names them is loaded again.

   How to use it, without any script:

     <section id="runs" data-live="run work.requested" hx-get="{{ here }}" hx-select="#runs" hx-trigger="live">

   data-live        which events concern it, by their names in the journal: `run` is all of `run.*`;
                    `*` is every event. (Of the project's own tenant: others are seen by the tick.)
   data-live-agent  only those of the agent of this name      } optional
   data-live-run    only those of the run of this number      }
   data-live-tick   seconds after which it is loaded again although nothing was told (default 30);
                    for what changes with time alone: "2 min ago", a duration, a lease
   hx-get           the page it is on, or a smaller one that has the same element
   hx-select        the element in the answer; it is merged into the old one (morph.js), so that
                    focus, scroll position, open <details> and what somebody typed stay

   Events that come together cause one load, and there is at most one a second. Nothing is loaded and
   no stream is open while the tab is hidden. While there is no stream (a person may not read it, the
   server is away), everything is loaded every 10 seconds instead.

   Scripts can listen, too: document gets `drover:event` for each event, its `detail` is the
   notification ({kind, agent_id, run_id, status, error, detail, at}); and `drover:live` whenever the
   stream opens or breaks, with `detail.state` "live", "reconnecting" or "polling". */
(() => {
  "use strict";
  const STREAM = "/v1/notifications/stream?events=all";
  // Who may read the stream is known where this script's address is written (admin_site.py).
  const MAY_LISTEN = new URL(document.currentScript.src).searchParams.has("listen");
  const TOGETHER_MS = 150, REST_MS = 1000, SLOW_TICK_MS = 10_000, TICK_SECONDS = 30;
  const FIRST_WAIT_MS = 1000, LONGEST_WAIT_MS = 60_000;

  let source = null, retry = 0, wait = FIRST_WAIT_MS, state = "";
  const loads = new WeakMap(); // element -> {at: when it was last loaded, timer}

  // --- what is loaded, and when ---------------------------------------------------------------

  const all = () => [...document.querySelectorAll("[data-live]")];
  const visible = () => document.visibilityState === "visible";

  function concerns(element, event) {
    const { live, liveAgent, liveRun } = element.dataset;
    if (liveAgent && liveAgent !== event.agent_id) return false;
    if (liveRun && liveRun !== String(event.run_id)) return false;
    return live.split(/\s+/).some((word) => word === "*" || `${event.kind}.`.startsWith(`${word}.`));
  }

  function load(element) {
    const last = loads.get(element);
    if (last?.timer || !visible()) return;
    const due = Math.max(TOGETHER_MS, (last?.at ?? 0) + REST_MS - Date.now());
    const timer = setTimeout(() => {
      loads.set(element, { at: Date.now() });
      if (element.isConnected && visible()) htmx.trigger(element, "live");
    }, due);
    loads.set(element, { at: last?.at ?? 0, timer });
  }

  function tick() {
    for (const element of all()) {
      const own = (Number(element.dataset.liveTick) || TICK_SECONDS) * 1000;
      const every = state === "live" ? own : Math.min(own, SLOW_TICK_MS);
      const last = loads.get(element) ?? { at: Date.now() };
      loads.set(element, last);
      if (Date.now() - last.at >= every) load(element);
    }
  }

  // --- the stream -----------------------------------------------------------------------------

  function listen() {
    if (!MAY_LISTEN || source || !visible()) return;
    source = new EventSource(STREAM);
    // The server's first event has the same name as the browser's own: either is good news.
    source.addEventListener("open", () => {
      if (state !== "live") all().forEach(load); // what happened while nobody listened
      wait = FIRST_WAIT_MS;
      show("live");
    });
    source.addEventListener("notification", (message) => {
      const event = JSON.parse(message.data);
      all().filter((element) => concerns(element, event)).forEach(load);
      document.dispatchEvent(new CustomEvent("drover:event", { detail: event }));
    });
    source.addEventListener("error", broken);
  }

  function broken(error) {
    show("reconnecting");
    // The browser itself comes back after a broken line; not after a refusal, and it should not at
    // once when the server has told why it ends the stream: such a last word has data.
    if (!error.data && source?.readyState !== EventSource.CLOSED) return;
    hangUp();
    all().forEach(load); // if the session is over, the answer leads to the login page
    retry = setTimeout(listen, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }

  function hangUp() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  // --- what people see of it ------------------------------------------------------------------

  const SAID = {
    live: ["Live", "This page follows the fleet as it happens"],
    reconnecting: ["Reconnecting", "The stream of events broke: the page asks every 10 seconds meanwhile"],
    polling: ["Every 10 s", "You may not read the stream of events: the page asks every 10 seconds"],
  };

  function show(now) {
    if (now === state) return;
    state = now;
    const sign = document.getElementById("dv-live") ?? newSign();
    const [text, title] = SAID[state];
    if (sign) Object.assign(sign, { className: `dv-live dv-live-${state}`, textContent: text, title });
    document.dispatchEvent(new CustomEvent("drover:live", { detail: { state } }));
  }

  function newSign() {
    const place = document.querySelector("#header-inner .ml-auto");
    const sign = place && document.createElement("span");
    sign?.setAttribute("role", "status");
    if (sign) place.prepend(Object.assign(sign, { id: "dv-live" }));
    return sign;
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (MAY_LISTEN) listen();
    else if (all().length) show("polling");
    setInterval(tick, 1000);
  });
  document.addEventListener("visibilitychange", () => {
    if (visible()) {
      listen();
      all().forEach(load);
    } else {
      hangUp();
    }
  });
  // A page that the browser keeps for "back" must not keep its stream.
  window.addEventListener("pagehide", hangUp);
  window.addEventListener("pageshow", (event) => event.persisted && listen());
})();
