"use strict";
// An address brings back what was shown.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { addressOf, listShown, sessionShown, visit } = require("./browser.js");
const { examples } = require("./stores.js");

test("links: ?q= asks the question again, in the list and in a session", async () => {
  const { server } = await examples();
  for (const [place, shown] of [["/", listShown], ["/sessions/coding-session", sessionShown]]) {
    const { page, close } = await visit(server, `${place}?q=retry+limit`);
    await shown(page);
    await page.locator("#find .hit mark").first().waitFor();
    assert.equal(await page.locator("#find input").inputValue(), "retry limit");
    // Another question replaces it in the address, and none takes it away.
    await page.locator("#find input").fill("泊位 & more?");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForFunction(() => new URLSearchParams(location.search).get("q") === "泊位 & more?");
    await page.reload();
    await shown(page);
    assert.equal(await page.locator("#find input").inputValue(), "泊位 & more?");
    await page.locator("#find input").fill("");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForFunction(() => location.search === "");
    assert.equal(await page.locator("#find .answer").textContent(), "");
    await close();
  }
});

test("links: ?payload= and lines= open the payload there, and the copied link does so again", async () => {
  const { server } = await examples();
  const { payloads } = await server.api("sessions/coding-session/payloads");
  const longest = payloads.filter((one) => one.kind !== "binary").sort((a, b) => b.lines - a.lines)[0];
  const from = Math.min(10, longest.lines - 2);
  const { page, context, close } = await visit(server, `/sessions/coding-session?payload=${encodeURIComponent(longest.ref)}&lines=${from}-${from + 2}`);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.address });
  await sessionShown(page);
  const meant = () => page.locator("#viewer .lines .meant").evaluateAll((lines) => lines.map((line) => [line.value, line.textContent]));
  await page.locator("#viewer .lines .meant").first().waitFor();
  const short = longest.ref.replace("store://", "");
  const { text } = await server.api(`sessions/coding-session/payloads/${short}?lines=${from}-${from + 2}`);
  const lines = text.replace(/\n$/, "").split("\n");
  assert.deepEqual(await meant(), lines.map((line, at) => [from + at, line || " "]));
  assert.ok(await page.locator("#viewer .lines .meant").first().isVisible());
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.startsWith(`${server.address}/sessions/coding-session?`), copied);
  await page.goto("about:blank");
  await page.goto(copied);
  await page.locator("#viewer .lines .meant").first().waitFor();
  assert.deepEqual((await meant()).map(([line]) => line), lines.map((_, at) => from + at));
  await close();
});

test("links: ?message= goes to the message, and #call= to the call", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/coding-session?message=14");
  await sessionShown(page);
  assert.equal(await page.locator(".said.target").getAttribute("id"), "m14");
  // In sight.
  await page.waitForFunction(() => {
    const [row, pane] = [".said.target", "#pane-all > div"].map((one) => document.querySelector(one).getBoundingClientRect());
    return row.top >= pane.top && row.top < pane.bottom && pane.top < innerHeight;
  });
  await page.goto(`${server.address}/sessions/coding-session#call=7`);
  await sessionShown(page);
  assert.equal(await page.locator("#call").inputValue(), "7");
  await page.keyboard.press("ArrowRight");
  assert.equal((await addressOf(page)).hash, "#call=8");
  await page.reload();
  await sessionShown(page);
  assert.equal(await page.locator("#call").inputValue(), "8");
  // An address that is typed over goes to its call without loading the page again.
  await page.evaluate(() => { location.hash = "call=5"; });
  await page.waitForFunction(() => document.getElementById("call").value === "5");
  // A call that there is none of is the last one; what cannot be read is left aside.
  for (const [hash, expected] of [["#call=99999", null], ["#call=x", null], ["#call=-3", "1"]]) {
    await page.goto("about:blank");
    await page.goto(`${server.address}/sessions/coding-session${hash}`);
    await sessionShown(page);
    const most = await page.locator("#call").getAttribute("max");
    assert.equal(await page.locator("#call").inputValue(), expected ?? most, hash);
  }
  await close();
});
