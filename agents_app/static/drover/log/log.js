// The log on the page of a run: its options, and the stream of new lines.
import { LogSearch } from "./search.js";
import { LogView } from "./view.js";

const POLL_MS = 2000;

// --- options, kept in the browser for the next log --------------------------------------------

function bindOptions(view, search) {
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
    search.schedule();
    if (view.following) view.toEnd();
  });
}

// --- new lines ----------------------------------------------------------------------------------

class LiveLines {
  constructor(view) {
    this.view = view;
    this.status = view.panel.querySelector("#dv-log-sign");
    this.received = [];
  }

  listen() {
    const { stream } = this.view.panel.dataset;
    const seen = this.view.last < 0 ? "" : `&last_event_id=${this.view.last}`;
    this.source = new EventSource(stream + seen);
    this.source.addEventListener("open", () => this.showStatus("live"));
    this.source.addEventListener("line", (message) => this.receive(JSON.parse(message.data)));
    this.source.addEventListener("end", () => this.end());
    this.source.addEventListener("error", () => this.handleError());
  }

  // Lines that come within 50 ms are one change of the page.
  receive(line) {
    this.received.push(line);
    this.timer ||= setTimeout(() => this.flush(), 50);
  }

  flush() {
    this.timer = 0;
    this.view.add(this.received.splice(0));
  }

  // The browser reconnects after a broken connection, but not after a refusal: then the page polls.
  handleError() {
    if (this.source.readyState !== EventSource.CLOSED) {
      this.showStatus("reconnecting");
      return;
    }
    this.poll();
  }

  async poll() {
    this.showStatus("updated every 2 s");
    try {
      const answer = await fetch(`${this.view.panel.dataset.lines}?after=${this.view.last}`);
      const { lines, ended } = await answer.json();
      this.view.add(lines);
      if (ended) {
        this.end();
        return;
      }
    } catch {
      this.showStatus("server not reachable, retrying");
    }
    setTimeout(() => this.poll(), POLL_MS);
  }

  end() {
    this.source.close();
    this.flush();
    this.showStatus("");
    this.view.empty.textContent = "No output.";
    this.view.followBox?.closest("label").remove();
    this.view.followBox = null;
  }

  showStatus(text) {
    this.status.textContent = text;
  }
}

const panel = document.getElementById("dv-log-panel");
if (panel) {
  const view = new LogView(panel);
  bindOptions(view, new LogSearch(view));
  if ("growing" in panel.dataset) {
    const live = new LiveLines(view);
    live.listen();
    window.addEventListener("pagehide", () => live.source.close());
    // A page that the browser restores for "back" has missed lines.
    window.addEventListener("pageshow", (event) => event.persisted && window.location.reload());
  }
}
