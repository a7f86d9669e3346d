"use strict";
// Chromium, and visits: a page with everything that went wrong in it.

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { chromium } = require("playwright-core");

const NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const OPTIONS = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

let opened = null;

/** The browser, with a folder of its own for the user's data, which it removes. One that ended is replaced. */
async function browser() {
  if (opened && !(await opened).isConnected()) opened = null;
  opened ??= chromium.launch({ executablePath: process.env.FOLDBACK_CHROMIUM || found(), args: OPTIONS });
  return opened;
}

function found() {
  const name = NAMES.find((one) => spawnSync(one, ["--version"], { stdio: "ignore" }).status === 0);
  if (!name) throw new Error(`no Chromium is installed; looked for ${NAMES.join(", ")}`);
  return spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
}

/** The windows that are open. */
const windows = new Set();

/** Closes what a test that failed left open: a server has places for sixteen pages. */
async function closeWindows() {
  await Promise.allSettled([...windows].map((context) => context.close()));
  windows.clear();
}

async function closeBrowser() {
  if (opened) await (await opened).close();
  opened = null;
}

/** The requests to the API that pages made, by all visits. */
const asked = new Set();

/** Text in the page's own console, or what the browser refuses: none of it may happen. */
function watch(page, address, problems) {
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== address) problems.push(`another host: ${url.href}`);
    else if (url.pathname.startsWith("/api/")) asked.add(`${url.pathname}${url.search}`);
  });
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // A page that is left ends its stream of changes, and what it still waits for.
    if (why !== "net::ERR_ABORTED") problems.push(`failed: ${request.url()} ${why}`);
  });
}

/** Opens a place of a server in a window of its own, as a browser that knows the token. */
async function visit(server, place, { dark, width = 1440, height = 900, script = true, zone = "UTC" } = {}) {
  const context = await (await browser()).newContext({
    viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce",
    javaScriptEnabled: script, locale: "en-GB", timezoneId: zone,
  });
  windows.add(context);
  // The browser's own word on what the content policy refused.
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`refused: ${event.violatedDirective} ${event.blockedURI}`));
  });
  const problems = [];
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  watch(page, server.address, problems);
  const go = (to) => {
    const url = new URL(to, server.address);
    url.searchParams.set("token", server.token);
    return page.goto(url.href);
  };
  const answer = await go(place);
  return {
    page, context, problems, answer, go,
    /** Closes the window. Nothing may have gone wrong in it but what is expected. */
    async close(expected = []) {
      windows.delete(context);
      await context.close();
      const unexpected = problems.filter((problem) => !expected.some((pattern) => pattern.test(problem)));
      assert.deepEqual(unexpected, []);
    },
  };
}

/** Waits until a session's page is complete, and follows changes. */
const sessionShown = async (page) => {
  await page.locator("body[data-drawn]").waitFor({ state: "attached" });
  await page.locator("#live.on").waitFor();
};

/** Waits until the list of sessions is there. */
const listShown = (page) => page.locator("#sessions-title").waitFor();

/** Where a page is, as it says itself: the browser reports an address that a page has changed a moment later. */
const addressOf = async (page) => new URL(await page.evaluate(() => location.href));

module.exports = { addressOf, asked, browser, closeBrowser, closeWindows, listShown, sessionShown, visit };
