// Searches the lines on the page, new lines too; earlier lines are loaded and searched on request.
// Matches are marked with the highlights of the browser, so that no line is cut into elements.

const MOST_MARKED = 2000;

export class LogSearch {
  constructor(view) {
    const part = (name) => view.panel.querySelector(`#dv-log-${name}`);
    this.view = view;
    this.field = part("find");
    this.count = part("count");
    this.rows = []; // lines with a match, in order
    this.current = -1; // index in rows
    this.isLoading = false;
    this.marks = globalThis.Highlight ? { "dv-found": new Highlight(), "dv-found-here": new Highlight() } : {};
    for (const [name, mark] of Object.entries(this.marks)) CSS.highlights.set(name, mark);
    this.field.addEventListener("input", () => this.start());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") this.stop();
    });
    part("next").addEventListener("click", () => this.go(1));
    part("previous").addEventListener("click", () => this.go(-1));
    view.changed.add(() => this.schedule());
  }

  get term() {
    return this.field.value.toLowerCase();
  }

  // Lines that come before the next frame are searched together.
  schedule() {
    if (this.term && !this.frame) this.frame = requestAnimationFrame(() => this.repeat());
  }

  repeat() {
    this.frame = 0;
    const current = this.rows[this.current];
    this.find();
    this.current = this.rows.indexOf(current);
    this.show();
  }

  start() {
    this.find();
    this.current = -1;
    this.show();
    if (this.rows.length) this.go(-1); // the newest match first, near the end that the view follows
  }

  stop() {
    this.field.value = "";
    this.start();
  }

  find() {
    const term = this.term;
    const visible = [...this.view.lines.children].filter((row) => row.checkVisibility?.() ?? true);
    this.rows = term ? visible.filter((row) => textOf(row).textContent.toLowerCase().includes(term)) : [];
  }

  go(step) {
    if (!this.rows.length) {
      this.searchEarlier();
      return;
    }
    const from = this.current < 0 && step < 0 ? 0 : this.current;
    this.current = (from + step + this.rows.length) % this.rows.length;
    this.view.follow(false);
    this.view.reveal(this.rows[this.current]);
    this.show();
  }

  // Loads earlier lines until there is a match, the beginning, or the limit of the page.
  async searchEarlier() {
    if (!this.term || this.isLoading) return;
    this.isLoading = this.view.held = true;
    this.show();
    let came = true;
    while (came && this.term && !this.rows.length && this.view.canLoadEarlier) {
      came = await this.view.loadEarlier();
      // The next frame searches the loaded lines and lets the page do its other work.
      await new Promise(requestAnimationFrame);
    }
    this.isLoading = this.view.held = false;
    this.show();
    if (this.rows.length && this.current < 0) this.go(-1);
  }

  show() {
    this.view.lines.querySelector(".dv-current")?.classList.remove("dv-current");
    const current = this.rows[this.current];
    current?.classList.add("dv-current");
    this.count.textContent = this.outcome();
    this.mark(current);
  }

  // Says how much of the log was searched, unless it was all of it.
  outcome() {
    if (!this.term) return "";
    const searched = this.view.earlier ? ` in the last ${this.view.lines.childElementCount.toLocaleString("en")}` : "";
    if (this.rows.length) {
      const place = this.current < 0 ? "" : `${this.current + 1} of `;
      const unit = this.rows.length === 1 ? "line" : "lines";
      return `${place}${this.rows.length.toLocaleString("en")} ${unit}${searched}`;
    }
    if (this.isLoading) return "searching earlier lines";
    const more = this.view.canLoadEarlier ? ": press Enter to search earlier lines" : "";
    return `not found${searched && `${searched} lines`}${more}`;
  }

  mark(current) {
    const { "dv-found": all, "dv-found-here": one } = this.marks;
    if (!all) return;
    all.clear();
    one.clear();
    // Around the current match, if there are too many to mark.
    const from = Math.max(0, Math.min(this.current, this.rows.length) - MOST_MARKED / 2);
    for (const row of this.rows.slice(from, from + MOST_MARKED)) {
      for (const range of ranges(textOf(row), this.term)) (row === current ? one : all).add(range);
    }
  }
}

const textOf = (row) => row.querySelector(".dv-text");

function* ranges(element, term) {
  const text = element.textContent.toLowerCase();
  // Some letters have another length in lower case, which would move the marks.
  if (text.length !== element.textContent.length) return;
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + term.length)) {
    const range = document.createRange();
    range.setStart(...placeIn(element, at));
    range.setEnd(...placeIn(element, at + term.length));
    yield range;
  }
}

// A match may begin in one colour and end in another.
function placeIn(element, offset) {
  const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let last = element;
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    if (offset <= node.length) return [node, offset];
    offset -= node.length;
    last = node;
  }
  return [last, last.length ?? 0];
}
