/* Shows important events as toasts in a corner; each disappears after STAYS_MS. */
(() => {
  "use strict";
  // Event name: tone, and the text after the name of the agent.
  const TEXTS = {
    "run.failed": ["bad", "failed"],
    "run.timed_out": ["bad", "timed out"],
    "run.lost": ["bad", "lost"],
    "run.dead": ["bad", "failed, no retries left"],
    "run.over_budget": ["wait", "stopped: over budget"],
    "agent.over_budget": ["wait", "budget used up"],
    "tenant.over_budget": ["wait", "Project budget used up"],
    "work.overflowed": ["wait", "queue full: oldest work item dropped"],
    "rule.failed": ["bad", "A rule failed"],
    "rules.invalid": ["wait", "scheduler.rules has lines with errors"],
    "rules.disabled": ["bad", "Rules disabled"],
    "notify.given_up": ["wait", "Notification not delivered"],
    "scheduler.paused": ["wait", "Scheduler paused"],
    "scheduler.resumed": ["good", "Scheduler resumed"],
    "scheduler.stopping": ["wait", "Drover is draining: no new runs start"],
  };
  const MOST = 4, LONGEST_DETAIL = 140, STAYS_MS = 10_000;
  const shown = new Map(); // event and agent -> {toast, count, timer}
  let corner;

  function show(event) {
    const [tone, words] = TEXTS[event.kind] ?? [];
    if (!tone) return;
    const key = `${event.kind} ${event.agent_id || ruleOf(event)}`;
    const before = shown.get(key);
    const count = (before?.count ?? 0) + 1;
    if (before) close(key);
    if (shown.size >= MOST) close(shown.keys().next().value);
    const toast = build(event, tone, words, count, () => close(key));
    corner.append(toast);
    shown.set(key, { toast, count });
    stay(key);
    for (const pause of ["mouseenter", "focusin"]) toast.addEventListener(pause, () => wait(key));
    for (const go of ["mouseleave", "focusout"]) toast.addEventListener(go, () => stay(key));
  }

  // The detail of rule.failed starts with the name of the rule; the rest differs between failures.
  function ruleOf({ kind, detail }) {
    return kind === "rule.failed" ? (detail ?? "").split(": ", 1)[0] : "";
  }

  function build(event, tone, words, count, dismiss) {
    const toast = make("div", `dv-toast dv-toast-${tone}`);
    const text = make("p", "dv-toast-text");
    const agent = event.agent_id ?? "";
    if (agent) text.append(make("strong", "", agent), " ");
    text.append(`${words}${count > 1 ? ` (${count} times)` : ""}`);
    const [label, href] = linkOf(event);
    if (href) text.append(" · ", Object.assign(make("a", "dv-link", label), { href }));
    const detail = (event.error || event.detail || "").replace(/^lost: /, "").slice(0, LONGEST_DETAIL);
    if (detail) text.append(make("span", "dv-below", detail));
    const button = make("button", "dv-toast-close", "×");
    Object.assign(button, { type: "button", ariaLabel: "Dismiss" });
    button.addEventListener("click", dismiss);
    toast.append(text, button);
    return toast;
  }

  function linkOf({ kind, run_id: run }) {
    if (run) return [`run #${run}`, `/admin/runs/${run}/change/`];
    return /^rules?\./.test(kind) ? ["rules", "/admin/rules/"] : [];
  }

  function make(name, className, text = "") {
    return Object.assign(document.createElement(name), { className, textContent: text });
  }

  function wait(key) {
    clearTimeout(shown.get(key)?.timer);
  }

  function stay(key) {
    wait(key);
    const entry = shown.get(key);
    if (entry) entry.timer = setTimeout(() => close(key), STAYS_MS);
  }

  function close(key) {
    wait(key);
    shown.get(key)?.toast.remove();
    shown.delete(key);
  }

  document.addEventListener("DOMContentLoaded", () => {
    // Screen readers announce changes only of a region that already exists.
    corner = make("div", "dv-toasts");
    corner.setAttribute("aria-live", "polite");
    corner.setAttribute("role", "region");
    corner.setAttribute("aria-label", "Notices");
    document.body.append(corner);
    document.addEventListener("drover:event", (event) => show(event.detail));
  });
})();
