/* In a [data-arrow-keys] timeline Tab reaches one bar of each lane, and the arrow keys reach the
   others: left and right within the lane, up and down between lanes. */
document.addEventListener("keydown", (event) => {
  const bar = event.target.closest?.("[data-arrow-keys] [role=group] > a");
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!bar || !step) return;
  const place = (one) => parseFloat(one.style.left);
  const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
  const lane = [...bar.parentElement.children].sort((one, other) => place(one) - place(other));
  const lanes = [...bar.closest("[data-arrow-keys]").querySelectorAll("[role=group]")];
  const beside = lanes[lanes.indexOf(bar.parentElement) + step];
  const nearest = (bars) => bars.sort(
    (one, other) => Math.abs(place(one) - place(bar)) - Math.abs(place(other) - place(bar)))[0];
  const next = sideways ? lane[lane.indexOf(bar) + step] : beside && nearest([...beside.children]);
  if (!next) return;
  event.preventDefault();
  for (const other of next.parentElement.children) other.tabIndex = other === next ? 0 : -1;
  next.focus();
});
