// Unfold toggles the menu with a span: keyboards and screen readers need a button.
const MENU = "[x-on\\:click*=sidebar]";

document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll(MENU)) {
    toggle.role = "button";
    toggle.tabIndex = 0;
    toggle.ariaLabel = "Menu";
  }
});

document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.(MENU) || !["Enter", " "].includes(event.key)) return;
  event.preventDefault();
  event.target.click();
});
