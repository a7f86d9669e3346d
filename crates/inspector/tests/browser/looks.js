"use strict";
// Both colour schemes on a narrow and a wide screen: nothing overflows, and axe-core finds no violation.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const path = require("node:path");
const axe = require("axe-core");
const { listShown, sessionShown, visit } = require("./browser.js");
const { agents, examples } = require("./stores.js");

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** A folder for a picture of each page that is looked at. */
const PICTURES = process.env.FOLDBACK_BROWSER_PICTURES;

/** What axe-core finds: the rule, and the first elements that break it. */
async function violations(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate((values) => axe.run({ runOnly: { type: "tag", values } }), RULES);
  return found.violations.map((rule) => {
    const nodes = rule.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)}: ${node.any.concat(node.all, node.none).map((check) => check.message).join("; ")}`);
    return `${rule.id} (${rule.nodes.length}): ${nodes.join(" | ")}`;
  });
}

/** Whatever is wider than the page, unless its own container scrolls. */
const tooWide = (page) => page.evaluate(() => {
  const most = document.documentElement.clientWidth;
  const found = document.documentElement.scrollWidth > most ? [`the page: ${document.documentElement.scrollWidth} of ${most}`] : [];
  const scrolls = (node) => node && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  for (const node of document.body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (box.width > 0 && box.right > most + 1 && !scrolls(node.parentElement)) found.push(`${node.localName}.${node.className}: to ${Math.round(box.right)}`);
  }
  return found.slice(0, 5);
});

/** The states of pages that are looked at: where, and what is done there before. */
const PAGES = {
  list: { place: "/", shown: listShown },
  "list-search": {
    place: "/?q=retry+limit",
    shown: listShown,
    async before(page) {
      await page.locator("#find .hit").first().waitFor();
      await page.locator("#find .hit summary").first().click();
    },
  },
  session: { place: "/sessions/coding-session", shown: sessionShown },
  "session-call": { place: "/sessions/coding-session#call=12", shown: sessionShown },
  "session-gateway": { place: "/sessions/through-the-gateway", shown: sessionShown },
  "session-languages": { place: "/sessions/bilingual-research?message=1", shown: sessionShown },
  "session-open": {
    place: "/sessions/coding-session?q=dead+letter",
    shown: sessionShown,
    async before(page) {
      await page.locator("#find .hit").first().waitFor();
      await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
      await page.locator("#curve table").waitFor();
      await page.locator("#stored .pick").first().click();
      await page.locator("#viewer .lines").waitFor();
      await page.locator("#blocks .block button").first().click();
    },
  },
  "session-term": {
    place: "/sessions/through-the-gateway",
    shown: sessionShown,
    async before(page) {
      await page.locator(".term[popovertarget=term-cache]").click();
      await page.locator("#term-cache").waitFor();
    },
  },
  "session-bill": {
    place: "/sessions/through-the-gateway",
    shown: sessionShown,
    async before(page) {
      await page.locator("#bill details summary").click();
      await page.locator("#bill table").waitFor();
      await page.getByRole("button", { name: "Tokens of each request" }).click();
    },
  },
  "session-run": {
    store: agents,
    place: "/sessions/tide",
    shown: sessionShown,
    before: (page) => page.evaluate(() => document.querySelectorAll("#runs details").forEach((node) => { node.open = true; })),
  },
  "session-long": { store: agents, place: "/sessions/long?message=5000", shown: sessionShown },
  "session-unknown": {
    place: "/sessions/nobody",
    shown: (page) => page.getByRole("alert").waitFor(),
    expected: [/^console: Failed to load resource: .* 404/],
  },
};

for (const [name, { store = examples, place, shown, before, expected }] of Object.entries(PAGES)) {
  for (const dark of [false, true]) {
    for (const width of [380, 1440]) {
      const look = `${dark ? "dark" : "light"} at ${width}`;
      test(`looks: ${name}, ${look}, fits and is accessible`, async () => {
        const { server } = await store();
        const { page, close } = await visit(server, place, { dark, width, height: width < 500 ? 800 : 900 });
        await shown(page);
        await before?.(page);
        if (PICTURES) await page.screenshot({ path: path.join(PICTURES, `${name}-${dark ? "dark" : "light"}-${width}.png`), fullPage: true });
        assert.deepEqual(await tooWide(page), []);
        assert.deepEqual(await violations(page), []);
        await close(expected);
      });
    }
  }
}

test("looks: the chosen theme overrules the browser's", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/coding-session?theme=dark");
  await sessionShown(page);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "dark");
  assert.deepEqual(await violations(page), []);
  await close();
});
