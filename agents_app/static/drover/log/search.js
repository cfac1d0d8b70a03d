// Search in the lines on the page, also in those that come while it is open; what is before them is
// looked at when somebody asks for more. Matches are marked with the browser's highlights, so what
// was printed is never cut into pieces.

const MOST_MARKED = 2000;

export class LogSearch {
  constructor(view) {
    const part = (name) => view.panel.querySelector(`#dv-log-${name}`);
    this.view = view;
    this.field = part("find");
    this.count = part("count");
    this.rows = []; // lines with a match, in order
    this.here = -1;
    this.lookingBack = false;
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
    view.changed.add(() => this.soon());
  }

  get wanted() {
    return this.field.value.toLowerCase();
  }

  // Many lines may come at once: they are searched together.
  soon() {
    if (this.wanted && !this.frame) this.frame = requestAnimationFrame(() => this.again());
  }

  again() {
    this.frame = 0;
    const current = this.rows[this.here];
    this.look();
    this.here = this.rows.indexOf(current);
    this.show();
  }

  start() {
    this.look();
    this.here = -1;
    this.show();
    if (this.rows.length) this.go(-1); // the newest first: that is where people are
  }

  stop() {
    this.field.value = "";
    this.start();
  }

  look() {
    const wanted = this.wanted;
    const visible = [...this.view.lines.children].filter((row) => row.checkVisibility?.() ?? true);
    this.rows = wanted ? visible.filter((row) => textOf(row).textContent.toLowerCase().includes(wanted)) : [];
  }

  go(step) {
    if (!this.rows.length) {
      this.lookBack();
      return;
    }
    const from = this.here < 0 && step < 0 ? 0 : this.here;
    this.here = (from + step + this.rows.length) % this.rows.length;
    this.view.follow(false);
    this.view.reveal(this.rows[this.here]);
    this.show();
  }

  // A piece at a time, until there is a match, the beginning, or as much as a page can hold.
  async lookBack() {
    if (!this.wanted || this.lookingBack) return;
    this.lookingBack = this.view.held = true;
    this.show();
    let came = true;
    while (came && this.wanted && !this.rows.length && this.view.canLoadEarlier) {
      came = await this.view.loadEarlier();
      // In this frame what came is searched, and the page gets on with everything else.
      await new Promise(requestAnimationFrame);
    }
    this.lookingBack = this.view.held = false;
    this.show();
    if (this.rows.length && this.here < 0) this.go(-1);
  }

  show() {
    this.view.lines.querySelector(".dv-current")?.classList.remove("dv-current");
    const current = this.rows[this.here];
    current?.classList.add("dv-current");
    this.count.textContent = this.outcome();
    this.mark(current);
  }

  // Whoever reads it must know that the beginning of the log was not looked at.
  outcome() {
    if (!this.wanted) return "";
    const searched = this.view.earlier ? ` in the last ${this.view.lines.childElementCount.toLocaleString("en")}` : "";
    if (this.rows.length) {
      const place = this.here < 0 ? "" : `${this.here + 1} of `;
      const unit = this.rows.length === 1 ? "line" : "lines";
      return `${place}${this.rows.length.toLocaleString("en")} ${unit}${searched}`;
    }
    if (this.lookingBack) return "looking further back";
    const more = this.view.canLoadEarlier ? ": Enter looks further back" : "";
    return `not found${searched && `${searched} lines`}${more}`;
  }

  mark(current) {
    const { "dv-found": all, "dv-found-here": one } = this.marks;
    if (!all) return;
    all.clear();
    one.clear();
    // Around the current one, if there are too many to mark.
    const from = Math.max(0, Math.min(this.here, this.rows.length) - MOST_MARKED / 2);
    for (const row of this.rows.slice(from, from + MOST_MARKED)) {
      for (const range of ranges(textOf(row), this.wanted)) (row === current ? one : all).add(range);
    }
  }
}

const textOf = (row) => row.querySelector(".dv-text");

function* ranges(element, wanted) {
  const text = element.textContent.toLowerCase();
  // Some letters have other lengths in lower case: then a mark could be anywhere.
  if (text.length !== element.textContent.length) return;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    const range = document.createRange();
    range.setStart(...placeIn(element, at));
    range.setEnd(...placeIn(element, at + wanted.length));
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
