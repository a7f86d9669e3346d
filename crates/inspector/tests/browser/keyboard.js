"use strict";
// Everything can be reached and used by keyboard alone, and the focus is never lost.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { addressOf, listShown, sessionShown, visit } = require("./browser.js");
const { allStops, checkFocus, tabTo } = require("./keys.js");
const { examples } = require("./stores.js");

/** What can be reached by Tab in a page as it is now. */
const reachable = (page) => page.evaluate(() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true })).length);

for (const [place, shown] of [["/", listShown], ["/sessions/coding-session", sessionShown]]) {
  for (const width of [1440, 380]) {
    test(`keyboard: every stop of ${place} can be seen at ${width}, in both directions, and none is a trap`, async () => {
      const { server } = await examples();
      const { page, close } = await visit(server, place, { width });
      await shown(page);
      const there = await allStops(page);
      assert.ok(there.length >= await reachable(page), `${there.length} stops of ${await reachable(page)}`);
      await page.reload();
      await shown(page);
      const back = await allStops(page, { back: true });
      assert.deepEqual(back.reverse(), there);
      await close();
    });
  }
}

test("keyboard: from the list by search, session, call, hit and payload, and back", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/");
  const { keyboard } = page;
  await listShown(page);

  // A search over all sessions; its hit leads to the message.
  await keyboard.press("/");
  await checkFocus(page);
  await keyboard.type("retry limit");
  await keyboard.press("Enter");
  await page.locator("#find .hit").first().waitFor();
  assert.equal((await addressOf(page)).searchParams.get("q"), "retry limit");
  await tabTo(page, "#find .hit a");
  await keyboard.press("Enter");
  await page.waitForURL(/\/sessions\/.*[?&]message=\d+/);
  await sessionShown(page);
  const isAtTarget = () => page.evaluate(() => document.activeElement.matches("#pane-all .said.target"));
  assert.ok(await isAtTarget(), "the focus is at the message");

  // The slider by its own keys, and calls by the arrow keys anywhere else.
  await tabTo(page, "#call", { back: true });
  const call = async () => Number(await page.locator("#call").inputValue());
  const last = Number(await page.locator("#call").getAttribute("max"));
  const first = await call();
  assert.ok(first > 1 && first < last, "it stands at the first call that has the message");
  await keyboard.press("ArrowLeft");
  assert.equal(await call(), first - 1);
  await keyboard.press("Home");
  assert.equal(await call(), 1);
  await keyboard.press("End");
  // A call by its number; what is no number changes nothing.
  await tabTo(page, "#call-number");
  for (const [typed, expected] of [["2", 2], ["0", 2], ["99999", last]]) {
    await keyboard.press("ControlOrMeta+a");
    await keyboard.type(typed);
    await keyboard.press("Enter");
    assert.equal(await call(), expected, typed);
    assert.equal(await page.locator("#call-number").inputValue(), String(expected), typed);
  }
  // The number of a message goes to the first call that has it; the arrow keys go from one to the next.
  await tabTo(page, "#pane-all .who button.link");
  const number = () => page.evaluate(() => Number(document.activeElement.textContent.slice(1)));
  const from = await number();
  await keyboard.press("ArrowUp");
  await keyboard.press("ArrowUp");
  await checkFocus(page);
  assert.equal(await number(), from - 2);
  await keyboard.press("ArrowDown");
  assert.equal(await number(), from - 1);
  await keyboard.press("Enter");
  const { picture } = await server.api(`sessions/${page.url().split("/sessions/")[1].split("?")[0]}/replay`);
  assert.equal(await call(), picture.calls.findIndex((one) => one.at > from - 1) + 1);
  await tabTo(page, "#call", { back: true });
  await keyboard.press("End");
  await tabTo(page, "button[aria-label='The call before']", { back: true });
  await keyboard.press("ArrowLeft");
  await keyboard.press("ArrowLeft");
  assert.equal(await call(), last - 2);
  await keyboard.press("Enter");
  assert.equal(await call(), last - 3);
  await checkFocus(page);
  assert.match((await addressOf(page)).hash, new RegExp(`call=${last - 3}$`));

  // A search in the session; its hit goes to the message in the transcript, and so does the focus.
  await keyboard.press("/");
  await keyboard.type("dead letter");
  await keyboard.press("Enter");
  await page.locator("#find .hit").first().waitFor();
  await tabTo(page, "#find .hit summary");
  await keyboard.press("Enter");
  assert.ok(await page.locator("#find .why-here dl").first().isVisible());
  await tabTo(page, "#find .hit .row button.link", { back: true });
  await keyboard.press("Enter");
  await checkFocus(page);
  assert.ok(await isAtTarget(), "the focus is at the message");

  // A hit in a payload goes to its lines.
  await keyboard.press("/");
  await tabTo(page, "#find .hit .line button.mono");
  await keyboard.press("Enter");
  await page.locator("#viewer .lines .meant").first().waitFor();
  await checkFocus(page);
  assert.ok(await page.evaluate(() => document.activeElement.matches("#viewer .lines")), "the focus is at the lines");

  // The payloads: by the link at the top, one of them, its next lines, a line by its number.
  await keyboard.press("/");
  await tabTo(page, "#jumps a[href='#stored']", { back: true });
  await keyboard.press("Enter");
  const { payloads } = await server.api("sessions/coding-session/payloads");
  const long = payloads.find((one) => one.lines > 200 && one.lines < 400);
  await tabTo(page, `#stored .pick[data-ref='${long.ref}']`);
  await keyboard.press("Enter");
  const firstLine = (line) => page.waitForFunction((n) => document.querySelector("#viewer .lines li")?.value === n, line);
  await firstLine(1);
  await checkFocus(page);
  // The button that goes on has the focus until it can do nothing more; then it is where the lines are.
  await tabTo(page, "#viewer .tools button");
  await keyboard.press("Enter");
  await firstLine(201);
  await checkFocus(page);
  assert.ok(await page.evaluate(() => document.activeElement.matches("#viewer .lines")));
  await tabTo(page, "#viewer .tools button", { back: true });
  await tabTo(page, "#viewer input[type=number]", { back: true });
  await keyboard.press("ControlOrMeta+a");
  await keyboard.type("7");
  await keyboard.press("Enter");
  await firstLine(7);
  await checkFocus(page);

  // Back to the list, and by the browser's way back to where the first search is.
  await keyboard.press("/");
  await tabTo(page, "#facts a[href='/']", { back: true });
  await keyboard.press("Enter");
  await listShown(page);
  await page.goBack();
  await sessionShown(page);
  await page.goBack();
  await page.locator("#find .hit").first().waitFor();
  assert.equal(await page.locator("#find input").inputValue(), "retry limit");
  await close();
});

test("keyboard: the project's words are explained at a press, and Escape closes that", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/through-the-gateway", { width: 380 });
  await sessionShown(page);
  for (const name of ["block", "cache", "whole", "folded", "recall", "kept", "payload", "weighted"]) {
    const word = page.locator(`.term[popovertarget=term-${name}]`).first();
    const text = page.locator(`#term-${name}`);
    assert.ok(!await text.isVisible(), name);
    await word.press("Enter");
    await text.waitFor();
    assert.ok((await text.textContent()).length > 40, name);
    const box = await text.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 380, name);
    await page.keyboard.press("Escape");
    await text.waitFor({ state: "hidden" });
    await checkFocus(page);
  }
  // By mouse as well: another press anywhere closes it.
  await page.locator(".term").first().click();
  await page.locator("#term-block").waitFor();
  await page.mouse.click(5, 5);
  await page.locator("#term-block").waitFor({ state: "hidden" });
  await close();
});

test("keyboard: on a narrow page every section is reached by its link", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/coding-session", { width: 380, height: 800 });
  await sessionShown(page);
  const links = page.locator("#jumps a");
  assert.ok(await links.count() >= 6);
  for (const link of await links.all()) {
    await link.focus();
    await checkFocus(page);
    await link.press("Enter");
    const place = (await link.getAttribute("href")).slice(1);
    assert.equal(await page.evaluate(() => document.activeElement.id), place);
    const top = await page.evaluate((id) => document.getElementById(id).getBoundingClientRect().top - document.querySelector(".bar").getBoundingClientRect().bottom, place);
    assert.ok(top >= 0 && top < 800, `${place} is ${top} below the bar`);
  }
  await close();
});

test("keyboard: on a narrow page the tabs and the slider are used as well", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/coding-session", { width: 380 });
  await sessionShown(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "views");
  await tabTo(page, "#call");
  await tabTo(page, "[role=tab][aria-selected=false]");
  await page.keyboard.press("Enter");
  await checkFocus(page);
  assert.ok(await page.locator("#pane-all").isVisible());
  assert.ok(!await page.locator("#pane-view").isVisible());
  await close();
});
