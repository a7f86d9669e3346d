// The payloads of the conversation, and what a search would have found.

/** The number of payloads that are listed before a button shows more. */
const LISTED = 40;

function drawOutside() {
  const payloads = picture.payloads;
  const title = element("div", { class: "title" }, element("div", null,
    element("h2", { id: "outside-title" }, "Payloads"),
    element("p", { class: "note" },
      payloads.length
        ? ["Large results and arguments leave the conversation on arrival, each as a ", term("payload", "payload"), ". A model sees each once while it is fresh; then this notice replaces it, and load brings it back by its reference, whole or by lines."]
        : "No result or argument was large enough to become a payload.")));
  const list = element("div", { class: "stored", tabindex: 0, role: "region", "aria-label": "List of payloads" });
  const add = (from) => {
    list.append(...payloads.slice(from, from + LISTED).map(payload));
    const left = payloads.length - from - LISTED;
    if (left <= 0) return;
    const more = element("p", { class: "more-row" }, element("button", {
      type: "button", class: "plain", onclick: () => { add(from + LISTED); more.nextElementSibling.querySelector("summary").focus(); more.remove(); },
    }, `${number(left)} more`));
    list.append(more);
  };
  if (payloads.length) add(0);
  fill("outside", title, payloads.length ? list : null);
}

function payload(one) {
  const block = picture.blockOf[one.seq];
  const where = block ? `message ${one.seq}, in b_${String(block.n).padStart(3, "0")}` : `message ${one.seq}, in the open tail`;
  const size = one.kind === "binary" ? one.kind : `${one.kind}, ${count(one.lines, "line")}`;
  return element("details", null,
    element("summary", null,
      element("span", { class: "mono" }, one.reference),
      element("span", { class: "what", dir: "auto" }, one.what,
        element("code", null, (one.preview.split("\n").find((line) => line.trim()) ?? "").trim().slice(0, 160))),
      element("span", { class: "num" }, bytes(one.bytes)),
      element("span", { class: "dim" }, size)),
    element("p", { class: "go" }, element("button", { type: "button", class: "link", onclick: () => showMessage(one.seq) }, where),
      ". The view shows in its place:"),
    element("pre", { dir: "auto", tabindex: 0 }, one.preview || "(no preview)"));
}

function drawSearches() {
  const title = element("div", { class: "title" }, element("div", null,
    element("h2", { id: "searches-title" }, "What a search would have found"),
    element("p", { class: "note" },
      picture.searches.length
        ? "At some calls: a question made from what the model was just told, asked of the memory as it stood then. The score is words and meaning together; a block that has too little to do with the question is left out of what the model gets."
        : "Too little folded here for a search to be of use.")));
  fill("searches", title, element("ol", { class: "asked" }, picture.searches.map(asked)));
}

function asked(search) {
  const hits = search.hits.map((hit) => {
    const block = picture.byNumber.get(hit.block);
    return element("li", { class: `hit ${hit.returned ? "" : "left-out"}` },
      element("div", { class: "row" },
        element("button", { type: "button", class: "link mono", onclick: () => block && goToBlock(block) }, `b_${String(hit.block).padStart(3, "0")}`),
        element("b", null, hit.score.toFixed(2)),
        element("span", { class: hit.in_view ? "tag on" : "tag" }, hit.in_view ? "in view" : "folded"),
        hit.exact ? element("span", { class: "tag" }, "exact") : null,
        hit.returned ? null : element("span", { class: "tag" }, "left out"),
        element("span", { class: "parts" }, `words ${hit.bm25.toFixed(1)} · meaning ${hit.cosine.toFixed(2)}`)),
      hit.line ? element("p", { class: "line", dir: "auto" }, hit.seq == null ? "" : `#${hit.seq} `, hit.line) : null);
  });
  return element("li", null,
    element("p", { class: "from" },
      element("button", { type: "button", class: "link", onclick: () => { chooseCall(search.call - 1); document.getElementById("views").scrollIntoView(); } }, `call ${number(search.call)}`),
      `, from ${search.from}`),
    element("p", { class: "query", dir: "auto" }, `“${search.query}”`),
    hits.length ? element("ol", null, hits) : element("p", { class: "line" }, "Nothing fits."));
}
