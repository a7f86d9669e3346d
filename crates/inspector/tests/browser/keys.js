"use strict";
// Going through a page by keyboard.

const assert = require("node:assert/strict");

/** What has the focus: a name for messages, whether it can be seen, and whether the browser shows that it has it. */
function focused(page) {
  return page.evaluate(() => {
    const node = document.activeElement;
    if (!node || node === document.body || node === document.documentElement) return null;
    window.stops ??= new Map();
    if (!window.stops.has(node)) window.stops.set(node, window.stops.size);
    const style = getComputedStyle(node);
    const box = node.getBoundingClientRect();
    const inside = { left: Math.max(box.left, 0), right: Math.min(box.right, innerWidth), top: Math.max(box.top, 0), bottom: Math.min(box.bottom, innerHeight) };
    // Several points: of a broken line of text not every point of its box is its own.
    const across = [0.02, 0.25, 0.5, 0.75, 0.98];
    const points = across.flatMap((x) => across.map((y) => [inside.left + x * (inside.right - inside.left), inside.top + y * (inside.bottom - inside.top)]));
    const isSeen = inside.right > inside.left && inside.bottom > inside.top && points.some(([x, y]) => {
      const there = document.elementFromPoint(x, y);
      return there && (node.contains(there) || there.contains(node));
    });
    const text = (node.getAttribute("aria-label") ?? node.textContent ?? "").trim().slice(0, 40);
    return {
      n: window.stops.get(node),
      name: `${node.localName}${node.id ? `#${node.id}` : ""}.${node.className} ${JSON.stringify(text)}`,
      isSeen,
      isShown: node.matches(":focus-visible") && style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2,
    };
  });
}

/** The focus is somewhere, can be seen, and is shown. */
async function checkFocus(page) {
  const at = await focused(page);
  assert.ok(at, "nothing has the focus");
  assert.ok(at.isSeen, `${at.name} has the focus and cannot be seen`);
  assert.ok(at.isShown, `nothing shows that ${at.name} has the focus`);
  return at;
}

/** Presses Tab until an element that fits has the focus. */
async function tabTo(page, selector, { back = false, most = 600 } = {}) {
  for (let presses = 0; presses < most; presses += 1) {
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
    await checkFocus(page);
    if (await page.evaluate((fits) => document.activeElement.matches(fits), selector)) return;
  }
  assert.fail(`${most} times Tab did not reach ${selector}`);
}

/** Goes through the whole page, and returns the names of all stops. Fails at a stop that traps or cannot be seen. */
async function allStops(page, { back = false, most = 3_000 } = {}) {
  await page.evaluate(() => { window.stops = new Map(); });
  const names = [];
  for (let presses = 0; presses < most; presses += 1) {
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
    const at = await focused(page);
    // Past the last one the focus leaves the page, or goes on at the first.
    if (!at || (at.n === 0 && names.length > 0)) return names;
    assert.equal(at.n, names.length, `${at.name} has the focus a second time, before the end of the page`);
    assert.ok(at.isSeen, `${at.name} has the focus and cannot be seen`);
    assert.ok(at.isShown, `nothing shows that ${at.name} has the focus`);
    names.push(at.name);
  }
  assert.fail(`after ${most} times Tab the page has not ended`);
}

module.exports = { allStops, checkFocus, focused, tabTo };
