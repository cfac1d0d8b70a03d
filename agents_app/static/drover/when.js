// Times in the browser's time zone, and example texts that a click puts into the trigger input.
//   <time datetime="ISO" data-yours>     is shown in the browser's time zone
//   <th data-your-zone>                  is the name of that zone; a table with the same
//                                        data-zone hides the second column
//   <button data-use="every day">        sets the input #id_text on click
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const shape = {
    weekday: "short", day: "2-digit", month: "short", year: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  };
  const clock = new Intl.DateTimeFormat("en-US", { ...shape, timeZoneName: "short" });
  const here = new Intl.DateTimeFormat("en-US", shape);

  // Two zones may have two names and one clock.
  const sameClock = (other, moments) => {
    if (other === zone) return true;
    try {
      const there = new Intl.DateTimeFormat("en-US", { ...shape, timeZone: other });
      return moments.every((moment) => there.format(moment) === here.format(moment));
    } catch {
      return false; // a zone that the browser does not know
    }
  };

  const written = (moment) => {
    const part = Object.fromEntries(clock.formatToParts(moment).map(({ type, value }) => [type, value]));
    const seconds = part.second === "00" ? "" : `:${part.second}`;
    const time = `${part.hour}:${part.minute}${seconds} ${part.timeZoneName}`;
    return `${part.weekday} ${part.day} ${part.month} ${part.year} ${time}`;
  };

  const fill = (root) => {
    for (const time of root.querySelectorAll("time[data-yours]")) {
      time.textContent = written(new Date(time.dateTime));
    }
    for (const name of root.querySelectorAll("[data-your-zone]")) name.textContent = `Your time (${zone})`;
    for (const table of root.querySelectorAll("table[data-zone]")) {
      const moments = [...table.querySelectorAll("time[data-yours]")].map((time) => new Date(time.dateTime));
      table.classList.toggle("dv-one-zone", sameClock(table.dataset.zone, moments));
    }
  };

  document.addEventListener("DOMContentLoaded", () => fill(document));
  document.addEventListener("htmx:afterSwap", (event) => fill(event.target));
  document.addEventListener("click", (event) => {
    const wanted = event.target.closest("[data-use]");
    const box = document.getElementById("id_text");
    if (!wanted || !box) return;
    box.value = wanted.dataset.use;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.focus();
  });
})();
