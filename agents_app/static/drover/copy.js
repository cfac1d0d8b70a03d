/* A button with `data-copy` copies that text, or without one the text of the <code> beside it. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.parentElement.querySelector("code").textContent;
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  // Browsers have no clipboard for pages that came over plain http from another machine.
  const said = copied || copiedTheOldWay(text) ? "Copied" : "Select it and press Ctrl+C";
  const label = button.querySelector(".dv-copy-label") ?? button;
  const before = button.dataset.label ?? label.textContent;
  button.dataset.label = before;
  label.textContent = said;
  clearTimeout(button.copyTimer);
  button.copyTimer = setTimeout(() => { label.textContent = before; }, 2000);
});

function copiedTheOldWay(text) {
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}
