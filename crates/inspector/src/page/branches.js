// The branches of a conversation whose client rewound, edited or forked it.

async function drawBranches(id, show) {
  let tree;
  try {
    tree = await ask(`${sessionPath(id)}/branches`);
  } catch (error) {
    fill("branches", problem(error));
    document.getElementById("branches").hidden = false;
    return;
  }
  const { stretches } = tree;
  if (stretches.length < 2) return;
  document.getElementById("branches").hidden = false;
  const children = (parent) => stretches.filter((one) => (one.parent ?? null) === parent);
  // A stretch with one child does not occur, so the nesting is as deep as the conversation was forked.
  const branch = (one) => element("li", null,
    element("button", { type: "button", class: "link", dir: "auto", onclick: () => show(one.first_seq) }, one.title ?? `message ${one.first_seq}`),
    element("small", null, ` ${count(one.messages, "message")}, recorded as ${one.first_seq}–${one.last_seq}`),
    one.is_latest ? element("span", { class: "tag" }, "latest") : null,
    children(one.n).length ? element("ul", null, children(one.n).map(branch)) : null);
  fill("branches",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "branches-title" }, count(stretches.filter((one) => one.is_tip).length, "branch").replace("branchs", "branches")),
      element("p", { class: "note" }, "Where the client went back, edited a message or forked. What branches share is recorded once."))),
    element("ul", { class: "tree" }, children(null).map(branch)));
}
