// What the session is, and what it really cost.

function drawFacts(session) {
  const facts = [
    session.messages == null ? null : count(session.messages, "message"),
    session.blocks == null ? null : [`${number(session.blocks)} `, term("block", session.blocks === 1 ? "block" : "blocks")],
    session.source,
    when(session.last),
    session.folder,
  ].filter(Boolean);
  document.title = `${session.title ?? session.id} · foldback`;
  fill("facts",
    element("p", { class: "small" }, element("a", { href: "/" }, "‹ All sessions")),
    element("h1", { dir: "auto" }, session.id),
    session.title ? element("p", { class: "said-first", dir: "auto" }, session.title) : null,
    element("p", { class: "small", dir: "auto" }, facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact]))),
    session.savings ? element("p", { class: "note" }, savingsTold(session.savings)) : null,
    session.problems.map((text) => element("p", { class: "problem", dir: "auto" }, text)));
}

/** The most failed calls that are named beside their number. */
const FAILURES_NAMED = 5;

/** The calls that failed, each with a link to its result in the transcript, where what the model saw is beside it. Of a
 * session that is not replayed, their number. */
function drawFailures(session) {
  const failed = (picture?.messages ?? []).flatMap((message, seq) => (["failed", "reads_failed"].includes(message.x) ? [[message, seq]] : []));
  const total = picture ? failed.length : session.failed_calls;
  if (!picture && total == null && session.messages > 0) countFailures(session.id);
  if (!total) return;
  // What the model saw when it made the call.
  const go = (seq) => {
    const asked = picture.askedAt(picture.messages[seq].by ?? seq);
    const call = asked < 0 ? picture.seenAt(seq) : asked;
    chooseCall(call < 0 ? LAST : call);
    showMessage(seq);
  };
  const links = failed.map(([message, seq]) => element("button", { type: "button", class: "link", onclick: () => go(seq) }, `#${seq}${message.n ? ` ${message.n}` : ""}`));
  const list = (some) => some.flatMap((link, at) => (at ? [", ", link] : [link]));
  const more = links.slice(FAILURES_NAMED);
  document.querySelector("#facts .follow").before(element("div", { class: "small", id: "failed" },
    element("p", null,
      element("b", { class: "bad" }, `✗ ${count(total, "failed call")}`),
      links.length ? [": ", ...list(links.slice(0, FAILURES_NAMED)), ". A link opens the result, and beside it what the model had seen when it made the call."] : "."),
    more.length ? element("details", null, element("summary", null, `${number(more.length)} more`), element("p", null, list(more))) : null));
}

/** Asks again until the failed calls of a long session are counted. */
function countFailures(id, wait = 800) {
  setTimeout(async () => {
    const session = await ask(sessionPath(id)).catch(() => null);
    if (session && session.failed_calls != null) drawFailures(session);
    else countFailures(id, Math.min(2 * wait, 60_000));
  }, wait);
}

/** Says what the replay is. Where it is known what was really sent, the replay's figures come after that. */
function drawReplayNote(session) {
  const policy = `Policy: ${INDEX.entries[0].report.policy}.`;
  const heading = document.querySelector("#head h1");
  if (!session.savings) {
    heading.replaceWith(element("h2", null, "What a replay sends, and other policies"), element("p", { class: "note" },
      "Its record is replayed from the first message on, with the tools and settings of now: it shows what a model is sent at each call, not a bill. ", policy));
    return;
  }
  heading.replaceWith();
  const place = fill("replay", element("details", null,
    element("summary", null, element("h2", { id: "replay-title" }, "A replay, beside other policies")),
    element("p", { class: "note" }, "An estimate of what this conversation costs under each policy, made by sending its messages again as the gateway folds by default; what was really sent and billed is at the top of this page. ", policy),
    document.getElementById("head"), document.getElementById("curve")));
  place.hidden = false;
  if (!picture) return;
  document.querySelector("#pane-view > header h3").textContent = "What a replay sends";
  document.querySelector("#pane-view > header").after(element("p", { class: "note", id: "really" },
    "Made again from the messages. The gateway may have sent more at this call."));
}
