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

/** The calls that failed, each with a link to its result in the transcript, where what the model saw is beside it. */
function drawFailures() {
  const failed = (picture?.messages ?? []).flatMap((message, seq) => (["failed", "reads_failed"].includes(message.x) ? [[message, seq]] : []));
  if (failed.length === 0) return;
  // What the model saw when it made the call.
  const go = (seq) => {
    const asked = picture.askedAt(picture.messages[seq].by ?? seq);
    chooseCall(asked < 0 ? picture.seenAt(seq) : asked);
    showMessage(seq);
  };
  const links = failed.slice(0, FAILURES_NAMED).map(([message, seq], at) => [at ? ", " : "",
    element("button", { type: "button", class: "link", onclick: () => go(seq) }, `#${seq}${message.n ? ` ${message.n}` : ""}`)]);
  const more = failed.length - FAILURES_NAMED;
  document.querySelector("#facts .follow").before(element("p", { class: "small", id: "failed" },
    element("b", { class: "bad" }, `✗ ${count(failed.length, "failed call")}`), ": ", links, more > 0 ? ` and ${number(more)} more` : "",
    ". A link opens the result, and beside it what the model had seen when it made the call."));
}

/** Says what the replay is. Where it is known what was really sent, the replay's figures are put behind that. */
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
