/* Live pages: one stream of events per page; elements that name an event are reloaded when it arrives.

   How to use it, without any script:

     <section id="runs" data-live="run work.requested" hx-get="{{ here }}" hx-select="#runs" hx-trigger="live">

   data-live        which events concern it, by their names in the journal: `run` is all of `run.*`;
                    `*` is every event. (Of the default tenant: events of others are seen by the tick.)
   data-live-agent  only those of the agent of this name      } optional
   data-live-run    only those of the run of this number      }
   data-live-tick   seconds after which it is reloaded without an event (default 30); for content
                    that changes with time: "2 min ago", a duration, a lease
   hx-get           the page it is on, or a smaller one that has the same element
   hx-select        the element in the response; morph.js merges it into the page, which keeps
                    focus, scroll position, open <details> and typed text

   Events that arrive together cause one load, and there is at most one load a second. While the tab is
   hidden nothing is loaded and no stream is open. Without a stream (no permission, or the server is
   not reachable) everything is loaded every 10 seconds.

   Scripts can listen, too: document gets `drover:event` for each event, its `detail` is the
   notification ({kind, agent_id, run_id, status, error, detail, at}); and `drover:live` whenever the
   stream opens or breaks, with `detail.state` "live", "reconnecting" or "polling". */
(() => {
  "use strict";
  const STREAM = "/v1/notifications/stream?events=all";
  // admin_site.py adds `?listen` for users who may read the stream.
  const MAY_LISTEN = new URL(document.currentScript.src).searchParams.has("listen");
  const TOGETHER_MS = 150, REST_MS = 1000, SLOW_TICK_MS = 10_000, TICK_SECONDS = 30;
  const FIRST_WAIT_MS = 1000, LONGEST_WAIT_MS = 60_000;

  let source = null, retry = 0, wait = FIRST_WAIT_MS, state = "";
  const loads = new WeakMap(); // element -> {at: when it was last loaded, timer}

  // --- reloading ------------------------------------------------------------------------------

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
    // Both the browser and the server send an event named `open`.
    source.addEventListener("open", () => {
      if (state !== "live") all().forEach(load); // events were missed while the stream was closed
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
    // The browser reconnects by itself after a broken connection, but not after a refusal. An error
    // with data is the server's reason for ending the stream: reconnect later.
    if (!error.data && source?.readyState !== EventSource.CLOSED) return;
    closeStream();
    all().forEach(load); // if the session has ended, the response is the login page
    retry = setTimeout(listen, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }

  function closeStream() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  // --- the sign in the header -----------------------------------------------------------------

  const LABELS = {
    live: ["Live", "This page is updated by events"],
    reconnecting: ["Reconnecting", "The event stream is interrupted; the page is updated every 10 seconds"],
    polling: ["Every 10 s", "You have no permission for the event stream; the page is updated every 10 seconds"],
  };

  function show(now) {
    if (now === state) return;
    state = now;
    const sign = document.getElementById("dv-live") ?? newSign();
    const [text, title] = LABELS[state];
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
      closeStream();
    }
  });
  // A page in the back/forward cache must not keep its stream.
  window.addEventListener("pagehide", closeStream);
  window.addEventListener("pageshow", (event) => event.persisted && listen());
})();
