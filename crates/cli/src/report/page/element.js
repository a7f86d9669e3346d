// Elements, and numbers as a person reads them. Text only ever becomes a text node.

/** An element with attributes, listeners (`onclick`) and children; null children are left out. */
function element(name, attributes, ...children) {
  return dress(document.createElement(name), attributes, children);
}

const DRAWING = document.querySelector("svg").namespaceURI;

/** Does the same inside a drawing. */
function shape(name, attributes, ...children) {
  return dress(document.createElementNS(DRAWING, name), attributes, children);
}

function dress(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

const fill = (id, ...children) => {
  const place = document.getElementById(id);
  place.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return place;
};

/** Items of one list in batches of `most`: the browser lays out only the batches near the view. `before` counts the items
 * before these, and `size` all of the list; it is -1 as long as that is not known. */
function batches(items, most, before, size) {
  items.forEach((item, at) => dress(item, { role: "listitem", "aria-posinset": before + at + 1, "aria-setsize": size }, []));
  const found = [];
  for (let at = 0; at < items.length; at += most) found.push(batch(element("div", null, items.slice(at, at + most))));
  return found;
}

/** Marks an element as one that is laid out only near the view, at first as high as its number of children suggests. */
function batch(node) {
  node.classList.add("batch");
  node.style.setProperty("--rows", node.childElementCount);
  return node;
}

const GROUPS = new Intl.NumberFormat("en-US");
const number = (n) => GROUPS.format(Math.round(n));
const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const short = (n) =>
  n < 1e4 ? number(n) : n < 999.5e3 ? `${trimmed(n / 1e3)}k` : `${trimmed(n / 1e6)}M`;
const trimmed = (n) => (n >= 100 ? n.toFixed(0) : n.toFixed(1).replace(/\.0$/, ""));

function bytes(n) {
  const units = ["B", "KB", "MB", "GB"];
  let at = 0;
  while (n >= 999.95 && at < units.length - 1) {
    n /= 1000;
    at += 1;
  }
  return at === 0 ? `${n} B` : `${n.toFixed(1)} ${units[at]}`;
}

/** `91 % less`, `12 % more`, `about the same`; the number stays with its sign. */
function compared(part, whole) {
  if (!(whole > 0)) return "";
  const percent = Math.round((1 - part / whole) * 100);
  if (percent === 0) return "about the same";
  return percent > 0 ? `${percent}\u00a0%\u00a0less` : `${number(-percent)}\u00a0%\u00a0more`;
}
