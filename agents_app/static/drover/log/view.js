// The lines on the page: new ones below, earlier ones above, never too many; sticks to its end
// until somebody scrolls up.
import { clockOf, lineElement } from "./line.js";

// While it is followed the oldest go; somebody who reads further up may have more of them.
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
    this.changed = new Set(); // told of lines that came or changed
    this.held = false; // somebody needs the earlier lines, also while the end is followed
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

  // Lines come in order; one that was open comes again under its number.
  add(lines) {
    if (!lines.length) return;
    const fresh = document.createDocumentFragment();
    for (const line of lines) {
      const row = lineElement(line, this.clock);
      const old = this.find(line.number) ?? fresh.querySelector(`[data-number="${line.number}"]`);
      if (old) old.replaceWith(row);
      else fresh.append(row);
      if (!line.open) this.last = Math.max(this.last, line.number);
      this.changed.forEach((tell) => tell(row, old));
    }
    this.lines.append(fresh);
    this.empty.hidden = true;
    this.trim();
    if (this.following) this.toEnd();
  }

  // Only the last few can be open, so the search is short.
  find(number) {
    for (let row = this.lines.lastElementChild; row; row = row.previousElementSibling) {
      if (Number(row.dataset.number) === number) return row;
      if (Number(row.dataset.number) < number) return null;
    }
    return null;
  }

  trim() {
    const most = this.following && !this.held ? MOST_FOLLOWED : MOST_READ;
    const height = this.box.scrollHeight;
    while (this.lines.childElementCount > most) this.lines.firstElementChild.remove();
    if (!this.following) this.box.scrollTop -= height - this.box.scrollHeight;
    this.showEarlier(Number(this.lines.firstElementChild?.dataset.number ?? 0));
  }

  showEarlier(count) {
    this.earlier = count;
    this.earlierButton.hidden = !count;
    this.earlierButton.disabled = this.full;
    const number = count.toLocaleString("en");
    this.earlierButton.textContent = this.full ? `${number} earlier lines are in the download` : `Earlier lines (${number})`;
  }

  // Whether any came. Two who ask at once get the same lines, once.
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
      rows.forEach((row) => this.changed.forEach((tell) => tell(row)));
      this.showEarlier(earlier);
      return rows.length > 0;
    } catch {
      this.showEarlier(this.earlier);
      this.earlierButton.textContent = "That did not work: try once more";
      return false;
    }
  }
}
