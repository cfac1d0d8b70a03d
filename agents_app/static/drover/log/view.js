// The lines on the page: new ones below, earlier ones above, up to a limit. The view follows the end
// of the log until the reader scrolls up.
import { clockOf, lineElement } from "./line.js";

// While the end is followed, the oldest lines are removed sooner than while earlier lines are read.
const MOST_FOLLOWED = 5000, MOST_READ = 20_000;
const NEAR_PX = 40;

export class LogView {
  constructor(panel) {
    const part = (name) => panel.querySelector(`#dv-log${name}`);
    this.panel = panel;
    this.box = part("");
    this.lines = part("-lines");
    this.empty = part("-empty");
    this.earlierButton = part("-earlier");
    this.followBox = part("-follow");
    this.clock = clockOf(panel.dataset.zone);
    this.earlier = Number(panel.dataset.earlier);
    this.last = Number(panel.dataset.last);
    this.changed = new Set(); // functions that are called with each new or changed line
    this.held = false; // a search needs the earlier lines, also while the end is followed
    this.box.addEventListener("scroll", () => this.follow(this.atEnd));
    this.followBox?.addEventListener("change", () => this.follow(this.followBox.checked));
    this.earlierButton.addEventListener("click", () => this.loadEarlier());
    this.following = true;
    this.toEnd();
  }

  get full() {
    return this.lines.childElementCount >= MOST_READ;
  }

  get canLoadEarlier() {
    return this.earlier > 0 && !this.full;
  }

  get atEnd() {
    return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < NEAR_PX;
  }

  follow(wanted) {
    this.following = wanted;
    if (this.followBox) this.followBox.checked = wanted;
    if (wanted && !this.atEnd) this.toEnd();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  // In the middle of the log; the page itself stays where it is.
  reveal(row) {
    this.box.scrollTop = row.offsetTop - (this.box.clientHeight - row.offsetHeight) / 2;
  }

  // Lines come in order. Each stream has at most one open line, which its next line replaces; open
  // lines are the last ones, and their numbers grow until they end.
  add(lines) {
    if (!lines.length) return;
    const open = new Map([...this.lines.querySelectorAll("[data-open]")].map((row) => [row.dataset.stream, row]));
    open.forEach((row) => row.remove());
    const fresh = document.createDocumentFragment();
    for (const line of lines) {
      const row = lineElement(line, this.clock);
      const old = open.get(line.stream);
      open.delete(line.stream);
      if (line.open) {
        open.set(line.stream, row);
      } else {
        fresh.append(row);
        this.last = Math.max(this.last, line.number);
      }
      this.changed.forEach((call) => call(row, old));
    }
    fresh.append(...open.values());
    this.lines.append(fresh);
    this.empty.hidden = true;
    this.trim();
    if (this.following) this.toEnd();
  }

  trim() {
    const most = this.following && !this.held ? MOST_FOLLOWED : MOST_READ;
    if (this.lines.childElementCount <= most) return;
    const height = this.box.scrollHeight;
    while (this.lines.childElementCount > most) this.lines.firstElementChild.remove();
    if (!this.following) this.box.scrollTop -= height - this.box.scrollHeight;
    this.showEarlier(Number(this.lines.firstElementChild.dataset.number));
  }

  showEarlier(count) {
    this.earlier = count;
    this.earlierButton.hidden = !count;
    this.earlierButton.disabled = this.full;
    const number = count.toLocaleString("en");
    this.earlierButton.textContent = this.full ? `${number} earlier lines are in the download` : `Earlier lines (${number})`;
  }

  // Returns whether lines came. Calls at the same time share one request.
  loadEarlier() {
    this.loading ??= this.fetchEarlier().finally(() => { this.loading = null; });
    return this.loading;
  }

  async fetchEarlier() {
    this.earlierButton.disabled = true;
    try {
      const answer = await fetch(`${this.panel.dataset.lines}?before=${this.earlier}`);
      const { lines, earlier } = await answer.json();
      const rows = lines.map((line) => lineElement(line, this.clock));
      const height = this.box.scrollHeight;
      this.follow(false);
      this.lines.prepend(...rows);
      this.box.scrollTop += this.box.scrollHeight - height;
      rows.forEach((row) => this.changed.forEach((call) => call(row)));
      this.showEarlier(earlier);
      return rows.length > 0;
    } catch {
      this.showEarlier(this.earlier);
      this.earlierButton.textContent = "Earlier lines could not be loaded: try again";
      return false;
    }
  }
}
