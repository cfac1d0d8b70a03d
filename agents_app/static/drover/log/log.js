// The log on the page of a run: what people choose, and the stream of what it prints.
import { LogSearch } from "./search.js";
import { LogView } from "./view.js";

const ASK_AGAIN_MS = 2000;

// --- what people choose, kept for the next log ------------------------------------------------

function choices(view, search) {
  const part = (name) => view.panel.querySelector(`#dv-log-${name}`);
  const toggle = (name, classes) => {
    const box = part(name), key = `drover-log-${name}`;
    box.checked = (localStorage.getItem(key) ?? "yes") === "yes";
    const apply = () => {
      localStorage.setItem(key, box.checked ? "yes" : "no");
      view.lines.classList.toggle(classes.on, box.checked);
      view.lines.classList.toggle(classes.off, !box.checked);
      if (view.following) view.toEnd();
    };
    box.addEventListener("change", apply);
    apply();
  };
  toggle("times", { on: "dv-with-times", off: "dv-no-times" });
  toggle("wrap", { on: "dv-wraps", off: "dv-no-wrap" });
  const streams = part("streams");
  streams.addEventListener("change", () => {
    view.lines.classList.toggle("dv-only-stdout", streams.value === "stdout");
    view.lines.classList.toggle("dv-only-stderr", streams.value === "stderr");
    search.soon();
    if (view.following) view.toEnd();
  });
}

// --- what it prints -----------------------------------------------------------------------------

class Growth {
  constructor(view) {
    this.view = view;
    this.sign = view.panel.querySelector("#dv-log-sign");
    this.waiting = [];
  }

  listen() {
    const { stream } = this.view.panel.dataset;
    const seen = this.view.last < 0 ? "" : `&last_event_id=${this.view.last}`;
    this.source = new EventSource(stream + seen);
    this.source.addEventListener("open", () => this.say("live"));
    this.source.addEventListener("line", (message) => this.take(JSON.parse(message.data)));
    this.source.addEventListener("end", () => this.end());
    this.source.addEventListener("error", () => this.broken());
  }

  // Thousands of lines in a moment are one change of the page.
  take(line) {
    this.waiting.push(line);
    this.frame ||= setTimeout(() => this.flush(), 50);
  }

  flush() {
    this.frame = 0;
    this.view.add(this.waiting.splice(0));
  }

  // The browser comes back by itself after a broken line; after a refusal the page asks instead.
  broken() {
    if (this.source.readyState !== EventSource.CLOSED) {
      this.say("reconnecting");
      return;
    }
    this.ask();
  }

  async ask() {
    this.say("every 2 s");
    try {
      const answer = await fetch(`${this.view.panel.dataset.lines}?after=${this.view.last}`);
      const { lines, ended } = await answer.json();
      this.view.add(lines);
      if (ended) {
        this.end();
        return;
      }
    } catch {
      this.say("not reached, tries again");
    }
    setTimeout(() => this.ask(), ASK_AGAIN_MS);
  }

  end() {
    this.source.close();
    this.flush();
    this.say("");
    this.view.empty.textContent = "It printed nothing.";
    this.view.followBox?.closest("label").remove();
    this.view.followBox = null;
  }

  say(text) {
    this.sign.textContent = text;
  }
}

const panel = document.getElementById("dv-log-panel");
if (panel) {
  const view = new LogView(panel);
  choices(view, new LogSearch(view));
  if ("growing" in panel.dataset) {
    const growth = new Growth(view);
    growth.listen();
    window.addEventListener("pagehide", () => growth.source.close());
    // A page that the browser had kept for "back" has missed something.
    window.addEventListener("pageshow", (event) => event.persisted && window.location.reload());
  }
}
