"use strict";
// Whatever was recorded is shown as text: nothing of it runs, becomes an element, or leads elsewhere.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { listShown, sessionShown, visit } = require("./browser.js");
const { texts } = require("./store.js");
const { examples, once } = require("./stores.js");

const MARKUP = texts("markup");
const CONTROLS = texts("terminal").map(([, text]) => text);

/** Each attack in each disguise. */
function injections() {
  const { attacks, disguises } = texts("injections");
  return attacks.flatMap((attack) => disguises.map((disguise) =>
    disguise.replaceAll("{attack as JSON}", () => JSON.stringify(attack)).replaceAll("{attack}", () => attack)));
}

/** The results of tools, ten at a time. */
function fetched(results) {
  const messages = [{ role: "user", content: "Read these pages." }];
  for (let from = 0; from < results.length; from += 10) {
    const ten = results.slice(from, from + 10).map((text, at) => ({ id: `c${from + at}`, text }));
    messages.push({ role: "assistant", content: null, tool_calls: ten.map(({ id, text }) => ({ id, type: "function", function: { name: "fetch", arguments: JSON.stringify({ page: text }) } })) });
    messages.push(...ten.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text })));
    messages.push({ role: "assistant", content: `Read up to page ${from + ten.length}.` });
  }
  return messages;
}

/** The text wherever a conversation can have one, also in what is stored outside. */
function everywhere(text) {
  const call = { id: text, type: "function", function: { name: `read${text}`, arguments: JSON.stringify({ path: text, [text]: "x" }) } };
  return [
    { role: "system", content: text },
    { role: "user", name: `n${text}`, content: `quokka ${text} here` },
    { role: "assistant", content: text, tool_calls: [call] },
    { role: "tool", tool_call_id: text, name: text, content: `${text}\r\nfar and quokka ${text}\n`.repeat(300) + text },
    { role: "user", content: [{ type: "text", text }] },
    { role: "assistant", content: `quokka\n${text}\n\tdone` },
  ];
}

/** A line of a log of Claude Code, which names the folder of the work. */
const logged = (text) => JSON.stringify({
  type: "user", uuid: "6f7c2d1e-0000-4000-8000-000000000001", parentUuid: null, sessionId: "6f7c2d1e-0000-4000-8000-000000000002",
  timestamp: "2026-03-01T10:00:00.000Z", cwd: `/home/dev/${text}`, message: { role: "user", content: `quokka ${text}` },
});

const all = [...MARKUP, ...CONTROLS].join(" ");

const hostile = once(async (store) => {
  store.conversation("markup", MARKUP.flatMap((text) => [{ role: "user", content: text }, { role: "assistant", content: `harbour ${text}` }]));
  store.conversation("injections", fetched(injections()));
  store.conversation("controls", CONTROLS.flatMap((text) => [{ role: "user", content: text }, { role: "assistant", content: `harbour ${text}` }]));
  store.conversation(`talk ${all}`, everywhere(all));
  store.import(store.write("log.jsonl", `${logged(all)}\n`));
});

/** The names of elements and attributes in a page. */
const parts = (page) => page.evaluate(() => [...new Set([...document.querySelectorAll("*")].flatMap((node) =>
  [node.localName, ...[...node.attributes].map((attribute) => `${node.localName} ${attribute.name}`)]))]);

/** Where links and scripts lead. */
const targets = (page) => page.evaluate(() => [...document.querySelectorAll("[href], [src], [action]")]
  .map((node) => node.getAttribute("href") ?? node.getAttribute("src") ?? node.getAttribute("action")));

/** Texts that turn the reading around, and are not in an element of their own direction. */
const turned = (page) => page.evaluate(() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (/[\u202a-\u202e\u2066-\u2069]/.test(data) && !parentElement.closest("[dir]:not(html)")) found.push(`${parentElement.localName}.${parentElement.className}: ${JSON.stringify(data.slice(0, 80))}`);
  }
  return found;
});

/** Opens whatever can be opened in a page. */
async function openAll(page) {
  await page.evaluate(() => {
    document.querySelectorAll("details").forEach((node) => { node.open = true; });
    document.querySelectorAll(".more[aria-expanded=false]").forEach((node) => node.click());
  });
}

let harmless = null;

/** The elements of pages whose texts are harmless, in the same states. */
async function harmlessParts() {
  if (harmless) return harmless;
  const { server } = await examples();
  harmless = new Set();
  for (const [place, shown] of [["/?q=retry", listShown], ["/sessions/coding-session?q=retry", sessionShown], ["/sessions/bilingual-research", sessionShown]]) {
    const { page, close } = await visit(server, place);
    await shown(page);
    if (place.includes("q=")) await page.locator("#find .hit").first().waitFor();
    const pick = page.locator("#stored .pick").first();
    if (await pick.count()) {
      await pick.click();
      await page.locator("#viewer .lines, #viewer pre").waitFor();
    }
    await openAll(page);
    for (const part of await parts(page)) harmless.add(part);
    await close();
  }
  return harmless;
}

/** A page of hostile texts has the elements and attributes of a harmless one, and leads to no other place. */
async function check(page) {
  const known = await harmlessParts();
  assert.deepEqual((await parts(page)).filter((part) => !known.has(part)), []);
  assert.equal(await page.locator("script").count(), 1);
  assert.deepEqual((await targets(page)).filter((to) => !/^[/#](?!\/)/.test(to)), []);
  assert.deepEqual(await turned(page), []);
}

test("hostile: titles, ids, folders and hits of the list are text", async () => {
  const { server } = await hostile();
  const { sessions } = await server.api("sessions");
  for (const question of ["harbour", "quokka", "wipe", MARKUP[0]]) {
    const { page, close } = await visit(server, `/?q=${encodeURIComponent(question)}`);
    await listShown(page);
    await page.locator("#find .hit").first().waitFor();
    await openAll(page);
    assert.deepEqual(await page.locator("#sessions .session .name").allTextContents(), sessions.map(({ title, id }) => title ?? id));
    assert.deepEqual(await page.locator("#sessions .session .folder").allTextContents(), sessions.map((one) => one.folder).filter(Boolean));
    await check(page);
    await close();
  }
});

/** What the transcript shows of each message, opened. */
const transcript = (page) => page.evaluate(() => [...document.querySelectorAll("#pane-all .said")].map((row) => {
  const own = (node) => [...node.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE).map((child) => child.data).join("");
  const text = row.querySelector(".text");
  return {
    text: text ? own(text) : "",
    inside: [...row.querySelectorAll(".text *, .call *")].map((node) => node.localName).filter((name) => !["button", "b"].includes(name)),
    calls: [...row.querySelectorAll(".call")].map((call) => [call.querySelector("b").textContent, own(call).slice(1)]),
  };
}));

test("hostile: every message, call and payload of a session is text, word for word", async () => {
  const { server } = await hostile();
  const { sessions } = await server.api("sessions");
  assert.equal(sessions.length, 5);
  let compared = 0;
  for (const { id } of sessions) {
    const { page, close } = await visit(server, `/sessions/${id}`);
    await sessionShown(page);
    await openAll(page);
    const { picture } = await server.api(`sessions/${id}/replay`);
    const ended = (text) => text.replace(/\n$/, "");
    const shown = await transcript(page);
    picture.messages.forEach((message, at) => {
      assert.equal(ended(shown[at].text), ended(message.t), `${id}, message ${at}`);
      assert.deepEqual(shown[at].inside, []);
      assert.deepEqual(shown[at].calls.map(([name, text]) => [name, ended(text)]), (message.c ?? []).map(([name, text]) => [name, ended(text)]));
      compared += 1;
    });
    for (let call = 1; call <= picture.calls.length; call += 5) await page.locator("#call").fill(String(call));
    for (const pick of await page.locator("#stored .pick").all()) {
      await pick.click();
      await page.locator("#viewer .lines, #viewer pre").waitFor();
    }
    await check(page);
    await close();
  }
  assert.ok(compared > 250, String(compared));
});

test("hostile: the 200 injected texts are on their page as they were recorded", async () => {
  const { server } = await hostile();
  const { page, close } = await visit(server, "/sessions/injections");
  await sessionShown(page);
  await openAll(page);
  const shown = (await transcript(page)).map(({ text }) => text);
  const missing = injections().filter((text) => !shown.some((one) => one === text || one === `${text}\n`));
  assert.equal(injections().length, 200);
  assert.deepEqual(missing, []);
  await close();
});

test("hostile: questions and parameters of an address are text", async () => {
  const { server } = await hostile();
  const { page, go, close } = await visit(server, "/");
  for (const text of [...MARKUP, ...CONTROLS]) {
    const one = encodeURIComponent(text);
    await go(`/sessions/markup?q=${one}&payload=${one}&lines=${one}&message=${one}&theme=${one}#call=${one}`);
    await sessionShown(page);
    await page.locator("#viewer .problem").waitFor();
    await page.waitForFunction(() => !document.querySelector("#find .answer").textContent.includes("Searching"));
    assert.equal(await page.locator("#find input").inputValue(), text.replaceAll(/[\r\n]/g, ""), "the question is what was asked");
    assert.equal(await page.locator("script").count(), 1);
    assert.equal(await page.locator("img, iframe, base, style, math").count(), 0);
  }
  await close([/^console: Failed to load resource: .* 4\d\d/]);
});
