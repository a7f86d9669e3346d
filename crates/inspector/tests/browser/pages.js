"use strict";
// Every page opens, with everything on it, without an error and without asking another host.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { addressOf, listShown, sessionShown, visit } = require("./browser.js");
const { agents, examples } = require("./stores.js");

test("the list of sessions opens, the newest first, with what was saved", async () => {
  const { server } = await examples();
  const { page, answer, close } = await visit(server, "/");
  await listShown(page);
  assert.equal(answer.status(), 200);
  assert.equal((await addressOf(page)).search, "", "the token leaves the address");
  const { sessions, savings } = await server.api("sessions");
  const shown = await page.locator("#sessions .session .id").allTextContents();
  assert.deepEqual(shown, sessions.map((session) => session.id));
  const newest = page.locator("#sessions .session").first();
  assert.equal(await newest.locator(".id").textContent(), "through-the-gateway");
  assert.match(await newest.locator(".saving").textContent(), /\d+\s%\sless cost: .* weighted tokens · .* tokens sent/);
  assert.ok(savings.requests > 20);
  assert.match(await page.locator("#sums .lead").textContent(), new RegExp(`in ${savings.requests} requests`));
  assert.equal(await page.locator("#sessions .saving").count(), 1, "the others did not pass through the gateway");
  await page.getByRole("button", { name: "Switch to the dark theme" }).click();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "dark");
  await close();
});

test("a session opens with its curve, blocks, transcript, view, payloads and searches", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/coding-session");
  await sessionShown(page);
  const session = await server.api("sessions/coding-session");
  const { picture } = await server.api("sessions/coding-session/replay");
  assert.equal(await page.title(), `${session.title} · foldback`);
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "coding-session");
  assert.equal(await page.locator("#pane-all .said").count(), picture.messages.length);
  assert.equal(await page.locator("#blocks .block").count(), picture.blocks.length);
  assert.match(await page.locator("#head .facts").textContent(), /\d+ messagesof block and tail at most; the bound is 12/);
  assert.ok(await page.locator("#curve svg[role=img] path.c-ours").isVisible());
  assert.equal(await page.locator("#outside details").count(), Math.min(40, picture.payloads.length));
  assert.equal(await page.locator("#searches .asked > li").count(), picture.searches.length);
  const { payloads } = await server.api("sessions/coding-session/payloads");
  assert.equal(await page.locator("#stored .pick").count(), payloads.length);
  // The view of the chosen call is what the model gets at it: the last one first, then another.
  for (const call of [picture.calls.length, 3]) {
    await page.locator("#call").fill(String(call));
    const parts = picture.calls[call - 1].v.length + picture.calls[call - 1].v.filter((id) => id < 0 && picture.forms[-1 - id].pin != null).length;
    assert.equal(await page.locator("#pane-view .said").count(), parts, `call ${call}`);
    assert.equal(await page.locator("#call-number").inputValue(), String(call));
  }
  await close();
});

test("a run of the agent shows its todo list, its steps and its sub-agents", async () => {
  const { server } = await agents();
  const { page, close } = await visit(server, "/sessions/tide");
  await sessionShown(page);
  const { runs, todo_list: items } = await server.api("sessions/tide/runs");
  const steps = runs[0].turns.flatMap((turn) => turn.steps);
  assert.equal(await page.locator("#runs .steps > li").count(), steps.length);
  assert.equal(await page.locator("#runs .items li").count(), items.length);
  await page.locator("#runs .steps summary", { hasText: "docs/columns.md" }).click();
  assert.match(await page.locator("#runs .steps pre.error").first().textContent(), /there is no docs\/columns\.md/);
  await page.locator("#runs .agent a", { hasText: "tide.data" }).click();
  await sessionShown(page);
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "tide.data");
  await close();
});

test("the list marks sub-agents, and shows no time where none is known", async () => {
  const { server } = await agents();
  const { page, close } = await visit(server, "/");
  await listShown(page);
  const { sessions } = await server.api("sessions");
  const children = sessions.filter(({ parent }) => parent != null);
  const { todo_list: items } = await server.api("sessions/tide/runs");
  const listed = sessions.filter(({ id }) => items.some((item) => item.id === id));
  assert.ok(children.length > 1 && children.every(({ parent }) => parent === "tide"));
  assert.deepEqual(children.map(({ id }) => id), listed.map(({ id }) => id));
  const marked = page.locator("#sessions .id .tag", { hasText: "sub-agent of tide" });
  assert.equal(await marked.count(), children.length);
  assert.equal(await page.getByText("1970").count(), 0);
  await marked.first().getByRole("link", { name: "tide" }).click();
  await sessionShown(page);
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "tide");
  assert.equal(await page.locator("#runs").getByText("1970").count(), 0);
  await close();
});

test("a session that is too long to be replayed is read where one looks", async () => {
  const { server } = await agents();
  const { page, close } = await visit(server, "/sessions/long?message=5000");
  await sessionShown(page);
  assert.match(await page.locator("#head .problem").textContent(), /10,001 messages/);
  assert.equal(await page.locator("#record .said.target .text").textContent(), "Berth 5000 泊位");
  await page.getByRole("button", { name: "Later messages ›" }).click();
  await page.locator("#record .said", { hasText: "Berth 5100 泊位" }).waitFor();
  await page.getByRole("spinbutton", { name: "Message" }).fill("10000");
  await page.getByRole("button", { name: "Go to message" }).click();
  await page.locator("#record .said.target", { hasText: "Berth 10000 泊位" }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Later messages ›" }).isDisabled());
  // The list of blocks grows as its end comes near.
  const shown = await page.locator("#blocks .block").count();
  await page.locator("#blocks .block").last().scrollIntoViewIfNeeded();
  await page.locator("#blocks .block").nth(shown).waitFor({ state: "attached" });
  await close();
});

test("a session of the gateway says what was really sent", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/through-the-gateway");
  await sessionShown(page);
  assert.match(await page.locator("#facts").textContent(), /Through the gateway: .* tokens sent of/);
  assert.match(await page.locator("#bill .expensive li").first().textContent(), /^request \d+ · \d+ % of the cost: it/);
  // A request from which more was left out says so, and what came of it.
  const { requests } = await server.api("sessions/through-the-gateway/requests");
  const folded = requests.find((one, at) => at && one.left_out > requests[at - 1].left_out);
  assert.ok(folded.changed_from > 0 && folded.changed_from < folded.after);
  assert.match(await page.locator("#bill .expensive").textContent(), /more messages were left out, so a cache was of no use from message \d+ on \(the provider did not report what it used\)/);
  const head = await page.locator("#replay").textContent();
  assert.match(head, /Policy: foldback-cache-aware\./);
  // The bound is that of the policy, which keeps more messages than the strict one.
  const [, held, bound] = /In the window(\d+) messages?of block and tail at most; the bound is ([\d,]+)/.exec(head).map((n) => Number(n.replace(",", "")));
  assert.ok(held > 12 && held <= bound, `${held} of ${bound}`);
  await close();
});

test("times are those of the browser's zone, also of hits and of requests", async () => {
  const { server } = await examples();
  // Half an hour beside all others: no other zone gives the same times.
  const zone = "Asia/Kolkata";
  const local = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short", timeZone: zone });
  const shown = (time) => local.format(new Date(time));
  const { page, close } = await visit(server, "/sessions/through-the-gateway?q=dead+letter", { zone });
  await sessionShown(page);
  const { requests } = await server.api("sessions/through-the-gateway/requests");
  await page.locator("#bill details summary").click();
  const times = page.locator("#bill tbody tr td:nth-child(2)");
  assert.deepEqual(await times.allTextContents(), requests.map((one) => shown(one.at)));
  assert.match(await times.first().locator("time").getAttribute("title"), /GMT\+5:30$/);
  await page.locator("#find .hit").first().waitFor();
  const { hits } = await server.api("sessions/through-the-gateway/search?q=dead+letter&k=10");
  const ofHits = await page.locator("#find .hit .parts").allTextContents();
  assert.deepEqual(ofHits.map((text) => text.split(" · ")[1]), hits.map((hit) => shown(`${hit.create_time.replace(" ", "T")}Z`)));
  await close();
});

test("a session of the gateway shows at a call what was sent", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/through-the-gateway");
  await sessionShown(page);
  const list = await server.api("sessions/through-the-gateway/requests");
  assert.ok(list.requests.every((one) => one.after != null), "each request is recorded");
  const view = page.locator("#pane-view");
  const shown = async (number) => {
    await page.locator("#really", { hasText: `Request ${number}, as the gateway recorded it.` }).waitFor();
    const sent = await server.api(`sessions/through-the-gateway/requests/${number}`);
    const seqs = sent.sent.flatMap(({ from, to, messages }) => (messages ? messages.map(() => from) : Array.from({ length: to - from }, (_, at) => from + at)));
    await page.waitForFunction((count) => document.querySelectorAll("#pane-view .said").length === count, seqs.length);
    const drawn = await view.locator(".said").evaluateAll((all) => all.map((one) => one.querySelector("button.link")?.textContent ?? null));
    assert.deepEqual(drawn.map((seq) => (seq?.startsWith("#") ? Number(seq.slice(1)) : null)), seqs, `request ${number}`);
    const gone = await page.locator("#pane-all .said.folded").count();
    assert.equal(gone, sent.left_out.reduce((sum, [from, to]) => sum + to - from, 0), `request ${number}`);
    const tokens = list.requests[number - 1].sent.tokens.toLocaleString("en-GB");
    assert.ok((await page.locator("#views .told").textContent()).includes(`The model got ${tokens} tokens`), tokens);
    return sent;
  };
  const last = await shown(list.total);
  assert.ok(last.left_out.length > 0, "something was left out");
  assert.match(await view.locator("h3").textContent(), /^What was sent$/);
  const [from, to] = last.left_out[0];
  assert.ok((await view.locator(".left-out").first().textContent()).includes(`#${from}–#${to - 1}`));
  // What the gateway wrote is there word for word.
  const added = last.sent.find(({ kind }) => kind === "added").messages[0].content;
  await view.locator(".said.made button.more").first().click().catch(() => {});
  assert.ok((await view.locator(".said.made .text").first().textContent()).startsWith(added.slice(0, 200)));
  await page.locator("#call").fill("1");
  const first = await shown(1);
  assert.ok(first.is_as_asked);
  assert.match(await view.textContent(), /nothing was left out/);
  await close();
});

test("a call that takes long is announced, and what was shown before it is dimmed", async () => {
  const { server } = await examples();
  const { page, close } = await visit(server, "/sessions/through-the-gateway");
  await sessionShown(page);
  await page.locator("#really", { hasText: "as the gateway recorded it" }).waitFor();
  const last = Number(await page.locator("#call").inputValue());
  const view = page.getByRole("region", { name: "What the model gets" });
  // What was fetched once is there at once: nothing flickers.
  await page.locator("#call").fill("1");
  await view.getByText("nothing was left out").waitFor();
  await page.evaluate(() => {
    window.busy = [];
    new MutationObserver(() => window.busy.push(document.querySelector("#pane-view [aria-busy]") != null))
      .observe(document.getElementById("pane-view"), { subtree: true, attributes: true, attributeFilter: ["aria-busy"] });
  });
  await page.locator("#call").fill(String(last));
  await page.waitForFunction(() => document.querySelector("#pane-view .left-out"));
  assert.deepEqual(await page.evaluate(() => window.busy), []);
  let go = null;
  const held = new Promise((done) => { go = done; });
  await page.route("**/requests/2", async (route) => {
    await held;
    await route.continue();
  });
  await page.locator("#call").fill("2");
  await page.locator("#pane-view [aria-busy=true]").waitFor();
  assert.match(await page.locator("#pane-view header").textContent(), /Loading call 2 …/);
  assert.ok(await page.evaluate(() => {
    const color = (selector) => getComputedStyle(document.querySelector(selector)).color;
    return color("#pane-view .said .text") === color("#pane-all .said.future .text");
  }), "what was shown before is paler");
  go();
  await page.locator("#pane-view [aria-busy=true]").waitFor({ state: "detached" });
  assert.match(await page.locator("#pane-view header").textContent(), /tokens with tools/);
  await close();
});

test("the blocks are one list, however many there are", async () => {
  const { server } = await agents();
  const { sessions } = await server.api("sessions");
  const long = sessions.find(({ id }) => id === "long");
  const { page, close } = await visit(server, "/sessions/long");
  await sessionShown(page);
  await page.locator("#blocks .block").last().scrollIntoViewIfNeeded();
  await page.locator("#blocks .block").nth(50).waitFor({ state: "attached" });
  const [lists, places] = await page.evaluate(() => [
    document.querySelectorAll("#blocks ol, #blocks [role=list]").length,
    [...document.querySelectorAll("#blocks .block")].map((one) => [one.closest("[role=list]") != null, one.role, one.ariaPosInSet, one.ariaSetSize].join(" ")),
  ]);
  assert.equal(lists, 1);
  assert.deepEqual(places, places.map((_, at) => `true listitem ${at + 1} ${long.blocks}`));
  await close();
});

test("an address that leads nowhere says so", async () => {
  const { server } = await examples();
  const nobody = await visit(server, "/sessions/nobody");
  const alert = nobody.page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.textContent(), /nobody/);
  await nobody.page.getByRole("link", { name: "All sessions" }).click();
  await listShown(nobody.page);
  await nobody.close([/^console: Failed to load resource: .* 404/]);
  const nowhere = await visit(server, "/nowhere");
  assert.equal(nowhere.answer.status(), 404);
  assert.match(await nowhere.page.locator("body").textContent(), /There is no such page/);
  await nowhere.close([/^console: Failed to load resource: .* 404/]);
});

test("a page without its script asks for it", async () => {
  const { server } = await examples();
  const { page, go, close } = await visit(server, "/", { script: false });
  for (const place of ["/", "/sessions/coding-session"]) {
    await go(place);
    assert.match(await page.locator("noscript").textContent(), /allow it to run/, place);
  }
  await close();
});
