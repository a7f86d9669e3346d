// The first page: what was saved, a search over everything, and the sessions, in the order that is asked for.

/** How many sessions are listed at first, and how many more a button adds. */
const PAGE = 50;

let shown = PAGE;
/** The orders in which sessions are listed, by their names in the address and in the API. */
const SORTS = { latest: "latest", cost: "cost", tokens_saved: "tokens saved" };
/** What this tab keeps; null if the browser keeps nothing. */
function kept() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

/** The order in the address, or else the one that was chosen last in this tab. */
const sort = () => {
  const asked = [new URLSearchParams(location.search).get("sort"), kept()?.getItem("sort")];
  return asked.find((name) => Object.hasOwn(SORTS, name ?? "")) ?? "latest";
};
/** The list that is drawn, as text: what did not change is not drawn again. */
let drawn = null;

/** Milliseconds until the list is asked for again, longer while it stays as it is. */
const [SOON, LATE] = [400, 60_000];
let wait = SOON;

let due = null;
function drawSoon() {
  wait = SOON;
  drawLater();
}

function drawLater() {
  clearTimeout(due);
  due = setTimeout(drawSessions, wait);
}

async function drawSessions() {
  let list;
  try {
    list = await ask("sessions", { limit: Math.min(shown, 500), sort: sort() });
  } catch (error) {
    drawn = null;
    fill("sessions", problem(error));
    return;
  }
  // Of a store that is looked at for the first time, failed calls are counted in several answers.
  const text = JSON.stringify(list);
  wait = text === drawn ? Math.min(2 * wait, LATE) : SOON;
  if (list.sessions.some((session) => session.failed_calls == null && session.messages > 0)) drawLater();
  if (text === drawn) return;
  drawn = text;
  drawSums(list);
  const rows = element("ol", { class: "sessions" }, list.sessions.map((session, at) => sessionRow(session, at === 0)));
  const more = (after) => {
    const row = element("p", { class: "more-row" }, element("button", { type: "button", class: "plain" }, `${number(list.total - rows.children.length)} more`));
    row.firstChild.addEventListener("click", async () => {
      try {
        const next = await ask("sessions", { limit: PAGE, after, sort: sort() });
        const added = next.sessions.map((session) => sessionRow(session, false));
        rows.append(...added);
        shown = rows.children.length;
        if (next.next) row.replaceWith(more(next.next));
        else row.remove();
        added[0]?.querySelector("a").focus();
      } catch (error) {
        row.replaceWith(problem(error));
      }
    });
    return row;
  };
  const empty = element("p", { class: "note" }, "The store has no sessions yet; `foldback import FILE`, `foldback wrap PROGRAM` and `foldback run TASK` add some.");
  refill("sessions",
    element("div", { class: "title" }, element("h2", { id: "sessions-title" }, count(list.total, "session")), list.total > 1 ? sortLinks() : null),
    list.total ? rows : empty, list.next ? more(list.next) : null);
}

function drawSums(list) {
  refill("sums",
    element("h1", null, "Sessions"),
    element("p", { class: "lead" }, list.savings
      ? savingsTold(list.savings)
      : "What agents and people said here. What passes through `foldback wrap` or `foldback gateway` also shows what it saved."));
}

/** Links to the same list in each order. */
function sortLinks() {
  const to = (name) => {
    const query = new URLSearchParams(location.search);
    query.set("sort", name);
    return `/?${query}`;
  };
  return element("nav", { class: "sorts", "aria-label": "Order of the sessions" }, "Sort by ",
    Object.entries(SORTS).map(([name, title], at) => [at ? " · " : "", element("a", { href: to(name), "aria-current": name === sort() ? "true" : null }, title)]));
}

/** `isFirst` is whether the words in it are explained. */
function sessionRow(session, isFirst) {
  const facts = [
    session.messages == null ? "unreadable" : count(session.messages, "message"),
    session.blocks == null ? null : isFirst ? [`${number(session.blocks)} `, term("block", session.blocks === 1 ? "block" : "blocks")] : count(session.blocks, "block"),
    session.source,
    when(session.last),
    session.failed_calls ? element("span", { class: "tag bad" }, `✗ ${count(session.failed_calls, "failed call")}`) : null,
  ].filter(Boolean);
  const savings = session.savings;
  return element("li", { class: "session" },
    element("p", { class: "name" }, element("a", { href: sessionLink(session.id), dir: "auto" }, session.title ?? session.id)),
    element("p", { class: "id mono" }, session.id,
      session.messages === 0 ? element("span", { class: "tag" }, "empty") : null,
      session.parent ? element("span", { class: "tag" }, "sub-agent of ", element("a", { href: sessionLink(session.parent) }, session.parent)) : null),
    element("p", { class: "small" }, facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact]))),
    session.folder ? element("p", { class: "small mono folder", dir: "auto" }, session.folder) : null,
    savings
      ? element("p", { class: "saving" }, element("b", null, savedPart(savings)), ` cost: ${short(savings.cost)} `, isFirst ? term("weighted", "weighted tokens") : "weighted tokens",
        ` · ${short(savings.sent.tokens)} of ${short(savings.whole.tokens)} tokens sent`,
        savings.estimated ? element("span", { class: "tag" }, savings.billed ? "partly estimated" : "estimated") : null)
      : null,
    session.problems.map((text) => element("p", { class: "problem", dir: "auto" }, text)));
}

function beginIndex() {
  kept()?.setItem("sort", sort());
  beginTheme();
  beginKeys();
  searchBox("find", {
    title: "Search all sessions",
    about: "By words and by meaning. Press / to come here.",
    run: (q) => ask("search", { q, k: 10 }),
    show: {
      block: (hit) => element("a", { class: "mono", href: `${sessionLink(hit.todo_id, { message: hit.first_seq })}` }, hit.block_id),
      message: (hit, seq) => element("a", { href: sessionLink(hit.todo_id, { message: seq }) }, `#${seq}`),
      session: (hit) => element("a", { class: "mono", href: sessionLink(hit.todo_id) }, hit.todo_id),
      payload: (hit, part) => element("a", { class: "mono", href: sessionLink(hit.todo_id, { payload: part.ref, lines: `${part.first_line}-${part.last_line}` }) }, part.ref),
    },
  });
  drawSessions();
  watchChanges(drawSoon, drawSoon);
}

beginIndex();
