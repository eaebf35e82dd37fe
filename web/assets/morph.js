// Makes one tree look like another and touches nothing that is the same already: focus, selection, scroll positions and
// running transitions stay where they are.

const isElement = (node) => node.nodeType === Node.ELEMENT_NODE;

const isBlank = (node) => node.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();

function sameKind(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    // Whether something is folded out is the viewer's affair.
    if (!fresh.hasAttribute(name) && !(name === "open" && old.localName === "details")) old.removeAttribute(name);
  }
}

function change(old, fresh) {
  if (!isElement(old)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute("data-keep") || old.isEqualNode(fresh)) return;
  attributes(old, fresh);
  const isField = old.matches("input, textarea, select");
  // What somebody is typing is theirs.
  if (isField && old === document.activeElement) return;
  children(old, fresh);
  if (isField && old.type !== "checkbox") old.value = fresh.value;
}

function remove(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function isWanted(node, fresh) {
  return isElement(node) && (!node.id || fresh.querySelector(`:scope > #${CSS.escape(node.id)}`));
}

/// Where the browser can, without its losing focus or starting anew.
function move(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

export function children(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.id) keyed.set(child.id, child);
  let here = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    // Blanks between elements come and go with the template's lines.
    while (isElement(wanted) && here && isBlank(here)) here = remove(here);
    const known = isElement(wanted) && wanted.id ? keyed.get(wanted.id) : undefined;
    if (known && known !== here) {
      // What stands before it and is not wanted any more goes first: then it need not move.
      while (here && here !== known && !isWanted(here, fresh)) here = remove(here);
      if (known === here) here = here.nextSibling;
      else move(old, known, here);
      change(known, wanted);
    } else if (here && sameKind(here, wanted)) {
      const next = here.nextSibling;
      change(here, wanted);
      here = next;
    } else {
      old.insertBefore(wanted, here);
    }
  }
  while (here) here = remove(here);
}

/// Makes the inside of `old` what `html` says.
export function morph(old, html) {
  const fresh = document.createElement(old.localName);
  fresh.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  children(old, fresh);
}
