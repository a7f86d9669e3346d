"use strict";
// Pages follow what is recorded while they are open, also after the connection or the command was gone.

const assert = require("node:assert/strict");
const net = require("node:net");
const { test } = require("node:test");
const { listShown, sessionShown, visit } = require("./browser.js");
const { once } = require("./stores.js");

const said = (text) => [{ role: "user", content: text }, { role: "assistant", content: `Noted: ${text}` }];

const small = once(async (store) => {
  store.conversation("first", said("Which port did we choose?"));
});

/** Messages of the browser about a server that is not there. */
const GONE = [/^console: Failed to load resource/, /^failed: .*\/api\//, /ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION|ERR_EMPTY/];

const ids = (page) => page.locator("#sessions .session .id").allTextContents();
const isLive = (page) => page.locator("#live.on", { hasText: "live" }).waitFor();

test("live: the list shows what another process records, and keeps the focus", async () => {
  const { store, server } = await small();
  const { page, close } = await visit(server, "/");
  await listShown(page);
  await isLive(page);
  await page.getByRole("link", { name: "Which port did we choose?" }).focus();
  // What changes before the stream's first look at the store is in the list that the page asks for.
  await page.waitForTimeout(1_500);
  store.record("second", ...said("And which pier?"));
  await page.getByRole("link", { name: "And which pier?" }).waitFor();
  assert.ok((await ids(page)).includes("second"));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Which port did we choose?");
  const messages = page.locator("#sessions .session", { hasText: "And which pier?" });
  assert.match(await messages.textContent(), /2 messages/);
  store.record("second", ...said("Pier seven."));
  await messages.filter({ hasText: "4 messages" }).waitFor();
  await close();
});

test("live: a session says that there are new messages, and loads them at a press", async () => {
  const { store, server } = await small();
  store.record("third", ...said("Where is the key?"));
  const { page, close } = await visit(server, "/sessions/third");
  await sessionShown(page);
  await page.waitForTimeout(1_500);
  store.record("third", ...said("Under the stone."));
  const fresh = page.getByRole("button", { name: "2 new messages: load them" });
  await fresh.waitFor();
  assert.equal(await page.locator("#pane-all .said").count(), 2, "nothing moves by itself");
  await fresh.press("Enter");
  await page.locator("#pane-all .said").nth(3).waitFor();
  await close();
});

/** Passes connections on to a server, until they are cut. */
async function cable(server, context) {
  const ends = new Set();
  let isCut = false;
  const proxy = net.createServer((near) => {
    if (isCut) return near.destroy();
    const far = net.connect(server.port, "127.0.0.1");
    for (const [one, other] of [[near, far], [far, near]]) {
      ends.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => { other.destroy(); ends.delete(one); });
    }
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  context.after(() => {
    ends.forEach((end) => end.destroy());
    proxy.close();
  });
  return {
    address: `http://127.0.0.1:${proxy.address().port}`,
    token: server.token,
    cut() {
      isCut = true;
      ends.forEach((end) => end.destroy());
    },
    mend() { isCut = false; },
  };
}

test("live: a page whose connection was cut connects again, and shows what it missed", async (context) => {
  const { store, server } = await small();
  const line = await cable(server, context);
  const list = await visit(line, "/");
  await listShown(list.page);
  store.record("fourth", ...said("What is missing?"));
  const session = await visit(line, "/sessions/fourth");
  await sessionShown(session.page);
  await isLive(list.page);
  line.cut();
  for (const { page } of [list, session]) await page.locator("#live.off").waitFor();
  store.record("fifth", ...said("Said in between."));
  store.record("fourth", ...said("This."));
  line.mend();
  for (const { page } of [list, session]) await isLive(page);
  await list.page.getByRole("link", { name: "Said in between." }).waitFor();
  await session.page.getByRole("button", { name: "2 new messages: load them" }).waitFor();
  await list.close(GONE);
  await session.close(GONE);
});

/** Shows one of the tabs of a window and hides the others, as a person does. A driven browser shows all of them. */
async function showOnly(tabs, shown) {
  for (const tab of tabs) {
    await tab.evaluate((isHidden) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (isHidden ? "hidden" : "visible") });
      document.dispatchEvent(new Event("visibilitychange"));
    }, tab !== shown);
  }
}

test("live: eight tabs of a browser open, and each shows what it missed when it is shown again", async () => {
  const { store, server } = await small();
  store.record("eight", ...said("潮位是多少?"));
  const { page, context, close } = await visit(server, "/sessions/eight");
  await sessionShown(page);
  // A browser has six connections to one host for all its tabs.
  const tabs = [page];
  for (let at = 1; at < 8; at += 1) {
    await showOnly(tabs, null);
    const tab = await context.newPage();
    tab.setDefaultTimeout(60_000);
    await tab.goto(`${server.address}${at % 2 ? "/" : "/sessions/eight"}`);
    await (at % 2 ? listShown(tab) : sessionShown(tab));
    await isLive(tab);
    tabs.push(tab);
  }
  await showOnly(tabs, null);
  for (const tab of tabs) await tab.locator("#live.off", { hasText: "paused" }).waitFor();
  store.record("eight", ...said("六米。"));
  for (const [at, tab] of tabs.entries()) {
    assert.equal(await tab.getByText("2 new messages").count(), 0, "a hidden page asks nothing");
    await showOnly(tabs, tab);
    await isLive(tab);
    if (at % 2) await tab.locator("#sessions .session", { hasText: "潮位是多少?" }).filter({ hasText: "4 messages" }).waitFor();
    else await tab.getByRole("button", { name: "2 new messages: load them" }).waitFor();
  }
  // The one that is shown follows what comes.
  const last = tabs.at(-1);
  await last.waitForTimeout(1_500);
  store.record("eight", ...said("谢谢。"));
  await last.locator("#sessions .session", { hasText: "潮位是多少?" }).filter({ hasText: "6 messages" }).waitFor();
  await close();
});

test("live: after the command was started again on the same port, a page goes on once its new address was opened", async () => {
  const { store } = await small();
  const server = await store.serve();
  const list = await visit(server, "/");
  await listShown(list.page);
  await isLive(list.page);
  await server.stop();
  await list.page.locator("#live.off", { hasText: "connecting" }).waitFor();
  const again = await store.serve(server.port);
  assert.equal(again.address, server.address);
  // The token is another one, and what the page still has opens nothing.
  await list.page.locator("#live.off", { hasText: "stopped" }).waitFor();
  const refused = list.page.getByRole("alert").filter({ hasText: "Changes are not followed" });
  assert.match(await refused.textContent(), /open the address that it printed/);
  store.record("sixth", ...said("After the new start."));
  const other = await list.context.newPage();
  await other.goto(`${again.address}/?token=${again.token}`);
  await listShown(other);
  await isLive(list.page);
  await list.page.getByRole("link", { name: "After the new start." }).waitFor();
  assert.equal(await list.page.getByRole("alert").count(), 0);
  await list.close(GONE);
  await again.stop();
});
