// What the session is, and what it really cost.

function drawFacts(session) {
  const facts = [
    session.messages == null ? null : count(session.messages, "message"),
    session.blocks == null ? null : count(session.blocks, "block"),
    session.source,
    when(session.last),
    session.folder,
  ].filter(Boolean);
  document.title = `${session.title ?? session.id} · foldback`;
  fill("facts",
    element("p", { class: "small" }, element("a", { href: "/" }, "‹ All sessions")),
    session.title ? element("p", { class: "said-first", dir: "auto" }, session.title) : null,
    element("p", { class: "small", dir: "auto" }, facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact]))),
    session.savings ? element("p", { class: "note" }, savingsTold(session.savings)) : null,
    session.problems.map((text) => element("p", { class: "problem", dir: "auto" }, text)));
}

/** Why the figures below are not a bill. */
function drawReplayNote(session) {
  const policy = INDEX.entries[0].report.policy;
  const what = session.savings
    ? "Its record is replayed here as the gateway folds by default. Client, provider and settings may have made some calls different; the sentence above is what was really sent."
    : "Its record is replayed here from the first message on, with the tools and settings of now: it shows what a model is sent at each call, not a bill.";
  const place = document.getElementById("head");
  place.append(element("p", { class: "note" }, what, ` Policy: ${policy}.`));
}
