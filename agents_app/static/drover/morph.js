/* Merges the loaded version of a [data-live] element into the page instead of replacing the element.

   Focus, scroll positions, selections, open <details> and typed text are kept, and changes can be
   animated (CSS transitions). Children are matched by `id` or `data-key`, else by their order.
   An element with `data-live-keep` is never touched: scripts own it. */
(() => {
  "use strict";
  const SET_BY_USER = new Set(["open"]); // <details> that the user opened

  const keyOf = (node) => node.id || node.dataset?.key || "";

  function sameKind(one, other) {
    return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
  }

  function mergeAttributes(old, fresh) {
    for (const { name, value } of [...fresh.attributes]) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !SET_BY_USER.has(name)) old.removeAttribute(name);
    }
  }

  function mergeChildren(old, fresh) {
    const wanted = new Set([...fresh.childNodes].map(keyOf).filter(Boolean));
    for (const node of [...old.childNodes]) if (keyOf(node) && !wanted.has(keyOf(node))) node.remove();
    const known = new Map([...old.childNodes].map((node) => [keyOf(node), node]));
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      const key = keyOf(node);
      const match = key ? known.get(key) : at && !keyOf(at) ? at : null;
      if (!match || !sameKind(match, node)) {
        old.insertBefore(node, at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      merge(match, node);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function merge(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
    } else if (!("liveKeep" in old.dataset) && !old.isEqualNode(fresh)) {
      mergeAttributes(old, fresh);
      mergeChildren(old, fresh);
    }
  }

  // drover.js has been asked before: a login page is not merged into anything.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, shouldSwap, serverResponse } = event.detail;
    if (!shouldSwap || target.dataset.live === undefined) return;
    event.detail.shouldSwap = false;
    const page = new DOMParser().parseFromString(serverResponse, "text/html");
    const fresh = page.querySelector(target.getAttribute("hx-select") ?? `#${CSS.escape(target.id)}`);
    if (!fresh) return; // a page that has it no more: what is there is better than nothing
    merge(target, fresh);
    htmx.process(target);
  });
})();
