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

/** Says that the figures of the replay are not a bill, and that its prompts were made again. */
function drawReplayNote(session) {
  const policy = INDEX.entries[0].report.policy;
  const what = session.savings
    ? "Its record is replayed as the gateway folds by default. Client, provider and settings may have made some calls different; what was really sent is above."
    : "Its record is replayed from the first message on, with the tools and settings of now: it shows what a model is sent at each call, not a bill.";
  const title = element("h2", null, session.savings ? "A replay, and other policies" : "What a replay sends, and other policies");
  document.querySelector("#head h1").replaceWith(title, element("p", { class: "note" }, what, ` Policy: ${policy}.`));
  if (!session.savings || !picture) return;
  document.querySelector("#pane-view > header h3").textContent = "What a replay sends";
  document.querySelector("#pane-view > header").after(element("p", { class: "note", id: "really" },
    "Made again from the messages. The gateway may have sent more at this call."));
}
