// One line of a log as an element, the same as the server renders it (run_log.html). The output of a
// program only ever becomes text nodes; the server chooses their classes and colours.

const SMALL = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

export function clockOf(zone) {
  // The zone of the browser, where the browser does not know the zone of the page.
  let format;
  try {
    format = new Intl.DateTimeFormat("en-GB", { ...SMALL, timeZone: zone });
  } catch {
    format = new Intl.DateTimeFormat("en-GB", SMALL);
  }
  return (seconds) => format.format(new Date(seconds * 1000));
}

export function lineElement(line, clock) {
  const row = document.createElement("div");
  row.className = `dv-line dv-${line.stream}`;
  row.dataset.number = line.number;
  row.dataset.stream = line.stream;
  row.toggleAttribute("data-open", line.open);
  const time = document.createElement("time");
  time.textContent = clock(line.at);
  const text = document.createElement("span");
  text.className = "dv-text";
  text.append(...line.spans.map(spanNode));
  row.append(time, text);
  return row;
}

function spanNode({ text, look = "", color = "", background = "" }) {
  if (!look && !color && !background) return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = look;
  span.style.color = color;
  span.style.background = background;
  span.textContent = text;
  return span;
}
