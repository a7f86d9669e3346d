// A search: the question, and its hits with the explanation of their scores.

/** The number of lines of a hit that are shown. */
const LINES = 3;

/** The form and the place of its answer. `run` is asked for the answer. */
function searchBox(place, { title, about, run, show }) {
  const input = element("input", {
    type: "search", name: "q", autocomplete: "off", spellcheck: "false", "aria-label": title, dir: "auto", maxlength: 4000,
    placeholder: "words, names, paths, error messages",
  });
  const answer = element("div", { class: "answer", "aria-live": "polite" });
  let latest = 0;
  const search = async () => {
    const question = input.value.trim();
    latest += 1;
    const own = latest;
    keep(question);
    if (!question) return answer.replaceChildren();
    answer.replaceChildren(element("p", { class: "note" }, "Searching …"));
    try {
      const found = await run(question);
      if (own === latest) answer.replaceChildren(...hitList(found, show));
    } catch (error) {
      if (own === latest) answer.replaceChildren(problem(error));
    }
  };
  fill(place,
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "find-title" }, title), element("p", { class: "note" }, about))),
    element("form", { class: "ask", role: "search", onsubmit: (event) => { event.preventDefault(); search(); } },
      input, element("button", { type: "submit", class: "plain" }, "Search")),
    answer);
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    search();
  }
}

/** Writes the question into the address, so that it can be shared and reloaded. */
function keep(question) {
  const query = new URLSearchParams(location.search);
  if (question) query.set("q", question);
  else query.delete("q");
  const text = query.toString();
  history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
}

function hitList(found, show) {
  const { words } = found;
  const told = [count(found.hits.length, "block")];
  if (found.blocks != null) told.push(`of ${number(found.blocks)} searched`);
  told.push(`in ${(found.took_us / 1000).toFixed(found.took_us < 10_000 ? 1 : 0)} ms`);
  const notes = [element("p", { class: "note" }, found.hits.length ? `${told.join(" ")}.` : "Nothing was found; try other words or a name.")];
  if (found.waiting) notes.push(element("p", { class: "note" }, `About ${count(found.waiting, "message")} are not indexed yet and were not searched.`));
  if (found.by_words_alone) notes.push(element("p", { class: "note" }, `${found.by_words_alone}; words alone were compared.`));
  const damaged = found.unsearched.length + found.unsearched_more;
  if (damaged) notes.push(element("p", { class: "note" }, `${count(damaged, "damaged or unreadable part")} could not be searched; \`foldback doctor\` names them.`));
  return [...notes, element("ol", { class: "hits" }, found.hits.map((hit, at) => oneHit(hit, at, words, show)))];
}

function oneHit(hit, at, words, show) {
  const range = hit.first_seq === hit.last_seq ? `message ${hit.first_seq}` : `messages ${hit.first_seq}–${hit.last_seq}`;
  const why = hit.explanation;
  // The time of a block is UTC, without its zone.
  const time = when(`${hit.create_time.replace(" ", "T")}Z`);
  return element("li", { class: "hit" },
    element("div", { class: "row" },
      element("span", { class: "rank" }, `${at + 1}.`), show.block(hit),
      element("b", { title: "the score, comparable within this answer" }, hit.score.toFixed(2)),
      hit.open ? element("span", { class: "tag" }, "still open") : null,
      why.exact ? element("span", { class: "tag on" }, "exact") : null,
      why.another_script ? element("span", { class: "tag" }, "another script") : null,
      element("span", { class: "parts" }, range, time ? [" · ", time] : null)),
    show.session ? element("p", { class: "of" }, show.session(hit)) : null,
    element("p", { class: "about", dir: "auto" }, hit.core_semantic),
    linesOf(hit, words).map(({ seq, role, line }) =>
      element("p", { class: "line", dir: "auto" }, element("span", { class: "seq" }, show.message(hit, seq), ` ${role} `), marked(line, words))),
    hit.payloads.map((part) => element("p", { class: "line", dir: "auto" }, show.payload(hit, part), " ",
      marked(bestLine(part.text ?? "(damaged)", words), words))),
    element("details", { class: "why-here" },
      element("summary", null, `words ${hit.bm25.toFixed(1)} · meaning ${hit.cosine.toFixed(2)}`),
      explained(hit)));
}

/** The parts of a score. */
function explained(hit) {
  const why = hit.explanation;
  const parts = [
    ["words", `BM25 ${hit.bm25.toFixed(2)}; the best block has ${why.best_bm25.toFixed(2)}. Words weigh ${(why.lexical_weight * 100).toFixed(0)} %.`],
    ["meaning", `cosine ${hit.cosine.toFixed(3)}${why.best_seq == null ? "" : `, from message ${why.best_seq}`}.`],
    ["relevance", `${why.relevance.toFixed(3)}; 0.72 means that it answers the question.`],
    why.neighbours ? ["neighbours", `+ ${why.neighbours.toFixed(3)} from the better adjacent block.`] : null,
    why.recent ? ["recent", `+ ${why.recent.toFixed(3)}: work with tools has just seen it.`] : null,
    why.dated ? ["dates", `+ ${why.dated.toFixed(3)} for the days that the question names.`] : null,
    why.bonus ? ["exact", `+ ${why.bonus.toFixed(3)} for exact names or rare words.`] : null,
    why.payload_bm25 ? ["payloads", `BM25 ${why.payload_bm25.toFixed(2)} by ${why.payload_terms.join(", ")}.`] : null,
  ].filter(Boolean);
  return [
    element("dl", null, parts.map(([name, text]) => [element("dt", null, name), element("dd", { dir: "auto" }, text)])),
    why.terms.length
      ? element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Terms that matched in ${hit.block_id}` }, element("table", null,
        element("thead", null, element("tr", null, ["term", "rarity", "times", "adds", "match"].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", null, why.terms.map((term) => element("tr", null,
          element("td", { dir: "auto" }, term.term), [term.idf.toFixed(2), number(term.tf), term.bm25.toFixed(2), term.exact ? "exact" : ""].map((text) => element("td", null, text)))))))
      : element("p", { class: "note" }, "No word of the question is in the block itself."),
  ];
}

/** Two letters or digits of one word. Scripts without spaces have no case, and every place in them may begin a word. */
const WITHIN = /^(?:\p{Ll}\p{Ll}|\p{Lu}\p{L}|\p{N}\p{N})$/u;

/** The first place from `from` on at which a word of the question begins a word of a line; -1 if there is none. */
function wordAt(word, line, from = 0) {
  const low = line.toLowerCase();
  // Lower case may have another length.
  const written = low.length === line.length ? line : low;
  for (let at = low.indexOf(word, from); at >= 0; at = low.indexOf(word, at + 1)) {
    if (at === 0 || !WITHIN.test(written.slice(at - 1, at + 1))) return at;
  }
  return -1;
}

const heldBy = (line, words) => words.filter((word) => wordAt(word, line) >= 0).length;

/** The lines of a hit with most of the question, in their order. */
function linesOf(hit, words) {
  const all = hit.messages.flatMap(({ seq, role, text }) =>
    text.split("\n").filter((line) => line.trim()).map((line) => ({ seq, role, line: shorter(line.trim(), words), held: heldBy(line, words) })));
  const best = [...all].sort((a, b) => b.held - a.held).slice(0, LINES);
  return all.filter((line) => best.includes(line) && (line.held > 0 || line === best[0]));
}

function bestLine(text, words) {
  const lines = text.split("\n").filter((line) => line.trim());
  const best = lines.reduce((found, line) => (heldBy(line, words) > heldBy(found, words) ? line : found), lines[0] ?? "");
  return shorter(best.trim(), words);
}

/** A long line around its first word of the question. */
function shorter(line, words) {
  const letters = [...line];
  const most = 240;
  if (letters.length <= most) return line;
  const first = Math.min(...words.map((word) => wordAt(word, line)).filter((at) => at >= 0), line.length);
  const from = first === line.length ? 0 : Math.max(0, [...line.slice(0, first)].length - 60);
  return `${from ? "… " : ""}${letters.slice(from, from + most).join("")} …`;
}

/** A line as text nodes, with the words of the question marked. */
function marked(line, words) {
  const nodes = [];
  // Lower case may have another length; then nothing can be marked by place.
  if (line.toLowerCase().length !== line.length) return [line];
  let from = 0;
  while (from < line.length) {
    let next = line.length;
    let long = 0;
    for (const word of words) {
      const at = wordAt(word, line, from);
      if (at >= 0 && (at < next || (at === next && word.length > long))) {
        next = at;
        long = word.length;
      }
    }
    nodes.push(line.slice(from, next));
    if (long) nodes.push(element("mark", null, line.slice(next, next + long)));
    from = next + long;
  }
  return nodes;
}
