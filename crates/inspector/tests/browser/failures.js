"use strict";
// What went wrong is marked and counted alike everywhere, and leads to what the model saw.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { listShown, sessionShown, visit } = require("./browser.js");
const { agents, examples } = require("./stores.js");

const call = async (page) => Number(await page.locator("#call").inputValue());
const target = (page) => page.locator(".said.target").getAttribute("id");

test("failures: a step of a run leads to its call and its result, and to what the model saw there", async () => {
  const { server } = await agents();
  const { page, close } = await visit(server, "/sessions/tide");
  await sessionShown(page);
  const { runs } = await server.api("sessions/tide/runs");
  const { picture } = await server.api("sessions/tide/replay");
  const steps = runs[0].turns.flatMap((turn) => turn.steps);
  const failed = steps.filter(({ state }) => state === "failed");
  assert.equal(failed.length, 2);
  // The count, the crosses and the failed calls at the top agree.
  assert.match(await page.locator("#runs .run > summary").textContent(), /✗ 2 steps failed/);
  assert.equal(await page.locator("#runs .steps summary", { hasText: "✗" }).count(), failed.length);
  assert.match(await page.locator("#failed").textContent(), /✗ 2 failed calls: #\d+ file_read, #\d+ shell_run/);
  assert.equal(await page.locator("#pane-all .who .bad").count(), failed.length);
  assert.equal(await page.locator("#runs .steps .places").count(), steps.length);
  for (const { call_seq: asked, result_seq: seen } of failed) {
    const places = page.locator("#runs .steps .failed .places").filter({ hasText: `result #${seen}` });
    await places.getByRole("button", { name: /^result/ }).click();
    assert.equal(await target(page), `m${seen}`);
    assert.equal(await call(page), picture.calls.findIndex(({ at }) => at > seen) + 1);
    await places.getByRole("button", { name: /^call/ }).press("Enter");
    assert.equal(await target(page), `m${asked}`);
    assert.equal(picture.calls[await call(page) - 1].at, asked, "what the model had seen when it asked");
  }
  // In the transcript, a result names both calls.
  const { result_seq: seq, call_seq: from } = failed[1];
  const row = page.locator(`#m${seq}`);
  await row.getByRole("button", { name: /^asked for by call/ }).click();
  assert.equal(picture.calls[await call(page) - 1].at, from);
  await row.getByRole("button", { name: /^seen by call/ }).click();
  assert.equal(await call(page), picture.calls.findIndex(({ at }) => at > seq) + 1);
  // The tools of the run are those that its record names.
  assert.match(await page.locator("#pane-view .own-tools").textContent(), new RegExp(`${runs[0].tools.length} tools that the agent declared.*shell_run`, "s"));
  await page.locator("#failed button").first().click();
  assert.equal(await target(page), `m${failed[0].result_seq}`);
  await close();
});

test("failures: the list marks sessions with failed calls", async () => {
  const { server } = await agents();
  const { page, close } = await visit(server, "/");
  await listShown(page);
  const tide = page.locator("#sessions .session", { has: page.locator(".id", { hasText: /^tide$/ }) });
  await tide.getByText("✗ 2 failed calls").waitFor();
  const counted = async () => {
    const { sessions } = await server.api("sessions");
    return sessions.map((one) => one.failed_calls);
  };
  // The long session is counted in several answers.
  await page.waitForFunction(() => fetch("/api/v1/sessions").then((answer) => answer.json()).then(({ sessions }) => sessions.every((one) => one.failed_calls != null)));
  const marked = (await counted()).filter((count) => count > 0);
  await page.waitForFunction((count) => document.querySelectorAll("#sessions .tag.bad").length === count, marked.length);
  await close();
});

test("sorting: the list is sorted by links, which the address keeps", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/?q=retry+limit");
  await listShown(page);
  const first = () => page.locator("#sessions .session .id").first().textContent();
  for (const [name, sort] of [["cost", "cost"], ["tokens saved", "tokens_saved"]]) {
    await page.getByRole("link", { name, exact: true }).press("Enter");
    await page.waitForURL((url) => url.searchParams.get("sort") === sort);
    await listShown(page);
    assert.equal(await first(), "through-the-gateway");
    const { sessions } = await server.api(`sessions?sort=${sort}`);
    assert.deepEqual(await page.locator("#sessions .session .id").allTextContents(), sessions.map(({ id }) => id));
    assert.equal(await page.locator(".sorts [aria-current=true]").textContent(), name);
    assert.equal(await page.locator("#find input").inputValue(), "retry limit", "the question stays");
  }
  // A way back without an order in its address keeps the order.
  await page.locator("#sessions .session a").first().click();
  await sessionShown(page);
  await page.goto(server.address);
  await listShown(page);
  const chosen = () => page.locator(".sorts [aria-current=true]").textContent();
  assert.equal(await chosen(), "tokens saved");
  await page.getByRole("link", { name: "latest", exact: true }).click();
  await page.waitForURL((url) => url.searchParams.get("sort") === "latest");
  await listShown(page);
  assert.equal(await chosen(), "latest");
  await close();
});

test("a session of the gateway leads with what was sent, names the tools of a request, and folds the replay away", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/through-the-gateway");
  await sessionShown(page);
  await page.locator("#really", { hasText: "as the gateway recorded it" }).waitFor();
  const { total } = await server.api("sessions/through-the-gateway/requests");
  const { tools } = await server.api(`sessions/through-the-gateway/requests/${total}`);
  assert.ok(tools.length > 2);
  assert.ok((await page.locator("#pane-view .own-tools").textContent()).includes(tools.join(", ")));
  const replay = page.locator("#replay > details");
  assert.ok(!await page.locator("#curve").isVisible());
  await page.locator("#jumps a[href='#replay']").click();
  await replay.locator("summary").first().click();
  await page.locator("#curve svg[role=img]").waitFor();
  assert.match(await replay.locator("> .note").textContent(), /An estimate of what this conversation costs/);
  assert.equal(await page.locator("#main > section").getByText(/plain price|look-up|stored outside/i).count(), 0);
  await close();
});

test("search: words that say nothing are not marked", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/?q=where+is+the+retry+limit");
  await listShown(page);
  await page.locator("#find .hit mark").first().waitFor();
  const marks = async () => [...new Set((await page.locator("#find .hit mark").allTextContents()).map((text) => text.toLowerCase()))].sort();
  assert.deepEqual(await marks(), ["limit", "retry"]);
  // Nor is a part of another word.
  await page.goto(`${server.address}/?q=retry+imit`);
  await listShown(page);
  await page.locator("#find .hit").first().waitFor();
  assert.deepEqual(await marks(), ["retry"]);
  await page.goto(`${server.address}/?q=${encodeURIComponent("我们的通知")}`);
  await listShown(page);
  await page.locator("#find .hit").first().waitFor();
  assert.deepEqual((await marks()).filter((word) => word !== "通知"), []);
  await close();
});
