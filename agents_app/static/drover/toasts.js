/* What nobody should have to look for is said in a corner, politely, and goes away by itself. */
(() => {
  "use strict";
  // Event: how grave it is, and what is said of its agent (or of the fleet).
  const TOLD = {
    "run.failed": ["bad", "failed"],
    "run.timed_out": ["bad", "timed out"],
    "run.lost": ["bad", "was lost with its worker"],
    "run.dead": ["bad", "failed for the last time"],
    "run.over_budget": ["wait", "was stopped: over its budget"],
    "agent.over_budget": ["wait", "has used up its budget"],
    "tenant.over_budget": ["wait", "The project's budget is used up"],
    "work.overflowed": ["wait", "dropped its oldest work: its queue is full"],
    "rule.failed": ["bad", "A rule failed"],
    "rules.invalid": ["wait", "scheduler.rules has lines that are no rules"],
    "rules.disabled": ["bad", "The rules are not obeyed any more"],
    "notify.given_up": ["wait", "A notification could not be delivered"],
    "scheduler.paused": ["wait", "The fleet was paused"],
    "scheduler.resumed": ["good", "The fleet goes on"],
    "scheduler.stopping": ["wait", "Drover is stopping: nothing new starts"],
  };
  const MOST = 4, LONGEST_DETAIL = 140, STAYS_MS = 10_000;
  const shown = new Map(); // what it is about -> {toast, count, timer}
  let corner;

  function tell(event) {
    const [tone, words] = TOLD[event.kind] ?? [];
    if (!tone) return;
    const about = `${event.kind} ${event.agent_id || ruleOf(event)}`;
    const before = shown.get(about);
    const count = (before?.count ?? 0) + 1;
    if (before) close(about);
    if (shown.size >= MOST) close(shown.keys().next().value);
    const toast = build(event, tone, words, count, () => close(about));
    corner.append(toast);
    shown.set(about, { toast, count });
    stay(about);
    for (const pause of ["mouseenter", "focusin"]) toast.addEventListener(pause, () => wait(about));
    for (const go of ["mouseleave", "focusout"]) toast.addEventListener(go, () => stay(about));
  }

  // No column has it, but what is said of a rule begins with its name; what else is said differs
  // each time it fails.
  function ruleOf({ kind, detail }) {
    return kind === "rule.failed" ? (detail ?? "").split(": ", 1)[0] : "";
  }

  function build(event, tone, words, count, dismiss) {
    const toast = make("div", `dv-toast dv-toast-${tone}`);
    const text = make("p", "dv-toast-text");
    const who = event.agent_id ?? "";
    if (who) text.append(make("strong", "", who), " ");
    text.append(`${words}${count > 1 ? ` (${count} times)` : ""}`);
    const [called, href] = linkOf(event);
    if (href) text.append(" · ", Object.assign(make("a", "dv-link", called), { href }));
    const detail = (event.error || event.detail || "").slice(0, LONGEST_DETAIL);
    if (detail) text.append(make("span", "dv-below", detail));
    const button = make("button", "dv-toast-close", "×");
    Object.assign(button, { type: "button", ariaLabel: "Dismiss" });
    button.addEventListener("click", dismiss);
    toast.append(text, button);
    return toast;
  }

  function linkOf({ kind, run_id: run }) {
    if (run) return [`run #${run}`, `/admin/agents_app/run/${run}/change/`];
    return /^rules?\./.test(kind) ? ["rules", "/admin/agents_app/rulestate/"] : [];
  }

  function make(name, className, text = "") {
    return Object.assign(document.createElement(name), { className, textContent: text });
  }

  function wait(about) {
    clearTimeout(shown.get(about)?.timer);
  }

  function stay(about) {
    wait(about);
    const entry = shown.get(about);
    if (entry) entry.timer = setTimeout(() => close(about), STAYS_MS);
  }

  function close(about) {
    wait(about);
    shown.get(about)?.toast.remove();
    shown.delete(about);
  }

  document.addEventListener("DOMContentLoaded", () => {
    // There before anything is said in it: only then is it read out.
    corner = make("div", "dv-toasts");
    corner.setAttribute("aria-live", "polite");
    corner.setAttribute("role", "region");
    corner.setAttribute("aria-label", "Notices");
    document.body.append(corner);
    document.addEventListener("drover:event", (event) => tell(event.detail));
  });
})();
