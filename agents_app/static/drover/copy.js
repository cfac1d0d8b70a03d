/* A button with `data-copy` copies that text, or, if it is empty, the text of the adjacent <code>. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.parentElement.querySelector("code").textContent;
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  // Browsers offer no clipboard to pages from another machine over plain http.
  const result = copied || copyWithSelection(text) ? "Copied" : "Select the text and press Ctrl+C";
  const label = button.querySelector(".dv-copy-label") ?? button;
  const before = button.dataset.label ?? label.textContent;
  button.dataset.label = before;
  label.textContent = result;
  clearTimeout(button.copyTimer);
  button.copyTimer = setTimeout(() => { label.textContent = before; }, 2000);
});

function copyWithSelection(text) {
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}
