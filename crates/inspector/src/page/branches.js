// The branches of a conversation whose client rewound, edited, forked or compacted it.

async function drawBranches(id, show) {
  const { total, stretches } = await ask(`${sessionPath(id)}/branches`);
  if (stretches.length < 2) return;
  document.getElementById("branches").hidden = false;
  const tips = stretches.filter((one) => one.is_tip).length;
  fill("branches",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "branches-title" }, `${number(tips)} branches`),
      element("p", { class: "note" }, "A ", term("branch", "branch"), " begins where the client went back, edited a message, forked or compacted the conversation, or began another. What branches share is recorded once.",
        total > stretches.length ? ` The first ${number(stretches.length)} of ${number(total)} parts are shown.` : ""))),
    treeOf(stretches, show));
}

/** The stretches as nested lists. The last continuation of a stretch stays at its level, so that a conversation that was
 * edited at each turn does not become deeper with each. */
function treeOf(stretches, show) {
  const top = element("ul", { class: "tree" });
  const last = new Map();
  for (const one of stretches) last.set(one.parent, one.n);
  // Each list with the rows of stretches in it, by the number of the stretch.
  const lists = new Map();
  for (const one of stretches) {
    const row = element("li", null,
      element("button", { type: "button", class: "link", dir: "auto", onclick: () => show(one.first_seq) }, one.title ?? `message ${one.first_seq}`),
      element("small", null, ` ${count(one.messages, "message")}, the first recorded as ${one.first_seq}`),
      one.is_latest ? element("span", { class: "tag" }, "latest") : null);
    const parent = lists.get(one.parent);
    let list = top;
    if (parent) {
      list = last.get(one.parent) === one.n ? parent.list : parent.row.appendChild(element("ul"));
    }
    list.append(row);
    lists.set(one.n, { list, row });
  }
  return top;
}
