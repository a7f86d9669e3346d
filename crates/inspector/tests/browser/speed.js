"use strict";
// How quickly long sessions open, scroll and are searched. What it measures is printed, and none of it is a failure.
//
//   FOLDBACK=target/release/foldback node speed.js

const { closeBrowser, visit } = require("./browser.js");
const { Store } = require("./store.js");

/** How often each thing is done; the median is printed. */
const TIMES = 5;

/** How far a frame scrolls, in pixels, and for how many frames. */
const STEP = 60;
const FRAMES = 600;

const QUESTIONS = ["which crane waits at quay 7", "berth 31415", "哪个泊位在等潮水", "tide at quay 12", "crane number 500"];

const SESSIONS = [
  { id: "blocks-10000", messages: 40_000 },
  { id: "messages-100000", messages: 100_000 },
];

const said = (_, n) => ({ role: n % 2 ? "assistant" : "user", content: `Berth ${n} 泊位: crane number ${(n * 7) % 1001} waits for the tide at quay ${n % 13}.` });

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const ms = (value) => `${value.toFixed(0)} ms`;

/** The time from the beginning of a visit until the page is complete. */
async function opening(server, id) {
  const times = [];
  for (let n = 0; n < TIMES; n += 1) {
    const { page, context, go, close } = await visit(server, "/");
    await context.addInitScript(() => {
      new MutationObserver(() => { if (document.body?.dataset.drawn != null) window.drawnAt ??= performance.now(); })
        .observe(document, { subtree: true, attributes: true, attributeFilter: ["data-drawn"] });
    });
    await go(`/sessions/${id}`);
    const drawn = await page.waitForFunction(() => window.drawnAt);
    times.push(await drawn.jsonValue());
    await close();
  }
  return median(times);
}

/** The times between the frames of a place that is scrolled from its top on. */
function scrolling(page, selector) {
  return page.evaluate(([place, step, frames]) => new Promise((done) => {
    const pane = document.querySelector(place);
    pane.scrollIntoView();
    pane.scrollTop = 0;
    const times = [];
    const next = (now) => {
      times.push(now);
      if (times.length > frames) return done({ took: times.slice(1).map((time, at) => time - times[at]), scrolled: pane.scrollTop });
      pane.scrollTop += step;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }), [selector, STEP, FRAMES]);
}

/** The times from a question to its hits on the page. */
async function searching(page) {
  const times = [];
  for (const question of QUESTIONS) {
    times.push(await page.evaluate((asked) => new Promise((done) => {
      const answer = document.querySelector("#find .answer");
      const began = performance.now();
      const look = new MutationObserver(() => {
        if (!answer.querySelector(".hit")) return;
        look.disconnect();
        done(performance.now() - began);
      });
      document.querySelector("#find input").value = asked;
      answer.replaceChildren();
      look.observe(answer, { childList: true });
      document.querySelector("#find form").requestSubmit();
    }), question));
  }
  return times;
}

async function main() {
  const store = new Store();
  process.on("exit", () => store.remove());
  for (const { id, messages } of SESSIONS) store.conversation(id, Array.from({ length: messages }, said));
  const server = await store.serve();
  for (const { id } of SESSIONS) {
    const { blocks, messages } = await server.api(`sessions/${id}`);
    console.log(`${id}: ${messages} messages, ${blocks} blocks`);
    console.log(`  opens in ${ms(await opening(server, id))} (median of ${TIMES})`);
    const { page, close } = await visit(server, `/sessions/${id}`);
    await page.locator("body[data-drawn]").waitFor({ state: "attached" });
    for (const [name, place] of [["blocks", "#blocks .blocks"], ["messages", "#record .reader"]]) {
      const { took, scrolled } = await scrolling(page, place);
      // Half a frame more than one: then a frame was left out.
      const late = took.filter((time) => time > 25).length;
      console.log(`  ${name}: ${took.length} frames over ${scrolled} pixels, median ${median(took).toFixed(1)} ms, ${late} late, the longest ${took.reduce((a, b) => Math.max(a, b)).toFixed(1)} ms`);
    }
    const times = await searching(page);
    console.log(`  searches: the first ${ms(times[0])}, then ${times.slice(1).map(ms).join(", ")}`);
    await close();
  }
  await closeBrowser();
  await server.stop();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
