// The whole transcript, and beside it exactly what the model gets at the chosen call.

/** The number of characters of a text that a list shows before it is opened. */
const PEEK = 420;
const STATES = {
  whole: "in view",
  light: "shown by a notice",
  pinned: "pinned, in view",
  folded: "folded",
  absent: "nothing to send",
  elsewhere: "on another branch",
  future: "",
};
const PARTS = {
  system: "Standing instructions",
  opening: "Pinned task and ledger",
  block: "The latest block, whole",
  tail: "The open tail",
  suffix: "Changes from call to call",
};

/** An answer that comes within this time, in milliseconds, is not announced. */
const SOON_MS = 150;

let rows = [];
/** The message in the transcript whose links the Tab key stops at. */
let stop = null;
/** Scrolls the transcript to the place of the call. */
let toCall = () => {};
/** How the call of a result went, if it did not succeed: the mark, what it says, and where that is known from. */
const OUTCOMES = {
  failed: ["✗ failed", "as the result states"],
  reads_failed: ["✗ failed, by its text", "as the text of the result says: nothing else is recorded of it"],
  not_made: ["– not run", "another call failed before it"],
};
/** The agent's own tools at the n-th call, as nodes, on a page that knows of them. */
let toolsAt = () => null;
/** What was really sent at the n-th call, on a page that knows it: a promise of what the view shows instead; or null. */
let sentAt = () => null;

function drawViews() {
  const calls = picture.calls;
  const slider = element("input", {
    type: "range", id: "call", min: 1, max: Math.max(calls.length, 1), value: 1, "aria-label": "Call",
    oninput: (event) => chooseCall(Number(event.target.value) - 1),
  });
  const step = (by, name) => element("button", {
    type: "button", class: "plain", "aria-label": name, onclick: () => chooseCall(chosen.call + by),
  }, by < 0 ? "‹" : "›");
  const field = element("input", {
    type: "number", id: "call-number", min: 1, max: slider.max, value: 1, onchange: () => chooseCall((Number.parseInt(field.value, 10) || chosen.call + 1) - 1),
  });
  field.style.width = `${slider.max.length + 3}ch`;
  const told = element("p", { class: "told" });
  const left = element("div", { tabindex: 0, role: "region", "aria-label": "The whole transcript" });
  const right = element("div", { tabindex: 0, role: "region", "aria-label": "What the model gets" });
  const leftHead = element("p");
  const rightHead = element("p");
  const panes = element("div", { class: "panes", "data-tab": "view" },
    element("div", { class: "pane", id: "pane-all" },
      element("header", null, element("h3", null, "Everything that was said"), leftHead), legend(), left),
    element("div", { class: "pane", id: "pane-view" },
      element("header", null, element("h3", null, "What the model gets"), rightHead), right));
  fill("views",
    element("h2", { id: "views-title" }, "The transcript and the model's view"),
    element("p", { class: "note" }, "The arrow keys go from call to call. What is ", term("folded", "folded"), " stays on the left word for word, and the ", term("recall", "recall"), " tools bring it back."),
    element("div", { class: "dial" },
      element("div", { class: "range" }, step(-1, "The call before"), slider, step(1, "The next call"),
        element("label", null, "call ", field, ` of ${number(calls.length)}`)), told),
    tabs(panes), panes);

  const here = element("p", { class: "here" });
  rows = transcript(left);
  stop = null;
  // Near the end of the pane, so that what led to it is above.
  toCall = () => scrollPane(left, here, left.clientHeight * 0.72);
  if (calls.length === 0) {
    leftHead.textContent = count(picture.messages.length, "message");
    right.append(element("p", { class: "note" }, "No model is called."));
    return;
  }
  let due = null;
  onCall((call, at) => {
    slider.value = at + 1;
    slider.setAttribute("aria-valuetext", `call ${at + 1} of ${calls.length}`);
    field.value = at + 1;
    const so_far = picture.sums[call.at];
    leftHead.textContent = `${count(call.at, "message")} so far · ${number(so_far)} tokens`;
    const show = (sent) => {
      if (picture?.calls[chosen.call] !== call) return;
      clearTimeout(due);
      right.removeAttribute("aria-busy");
      told.replaceChildren(...(sent?.told ?? ["The model gets ", element("b", null, `${number(call.k)} tokens`), ", the recall tools included"]),
        `; ${number(so_far)} were said so far`);
      rightHead.textContent = sent?.head ?? `${count(call.v.length, "message")} · ${number(call.k)} tokens with tools`;
      mark(sent?.states ?? states(call));
      right.replaceChildren(...(sent?.nodes ?? view(call)));
      right.scrollTop = 0;
    };
    const sent = sentAt(at);
    clearTimeout(due);
    if (sent) {
      due = setTimeout(() => {
        right.setAttribute("aria-busy", "true");
        rightHead.textContent = `Loading call ${number(at + 1)} …`;
      }, SOON_MS);
      sent.then(show, () => show(null));
    } else show(null);
    here.textContent = `call ${number(at + 1)}`;
    const next = rows[call.at];
    if (next) (next.seam ?? next.node).before(here);
    else left.append(here);
    toCall();
    stopAt(call.at - 1);
  });
  left.addEventListener("keydown", goAlong);
}

function legend() {
  const sign = (kind, text) => element("span", null, element("i", { class: kind, "aria-hidden": "true" }), text);
  return element("p", { class: "marks" }, sign("whole", "in view"), sign("light", "offloaded, shown by a notice"), sign("", "folded"));
}

function tabs(panes) {
  const tab = (name, title) => element("button", {
    type: "button", class: "plain", role: "tab", "aria-controls": name === "all" ? "pane-all" : "pane-view",
    "aria-selected": String(name === "view"), "data-name": name, onclick: () => showTab(name),
  }, title);
  return element("div", { class: "tabs", role: "tablist", "aria-label": "What to show" },
    tab("view", "What the model gets"), tab("all", "Everything said"));
}

function showTab(name) {
  document.querySelector(".panes").dataset.tab = name;
  for (const tab of document.querySelectorAll(".tabs button")) {
    tab.setAttribute("aria-selected", String(tab.dataset.name === name));
  }
  if (name === "all") toCall();
}

/** How many rows are laid out at once: a batch ends before the next block, or when it is full. */
const ROWS_AT_ONCE = 40;
const MOST_ROWS_AT_ONCE = 200;

/** The rows of the transcript, with a line before each block. */
function transcript(place) {
  let before = null;
  let together = element("div");
  const end = () => {
    if (together.childElementCount > 0) place.append(batch(together));
    together = element("div");
  };
  const stored = new Set(picture.payloads.map((payload) => payload.seq));
  const drawn = picture.messages.map((message, seq) => {
    const block = picture.blockOf[seq];
    let seam = null;
    if (together.childElementCount >= (block === before ? MOST_ROWS_AT_ONCE : ROWS_AT_ONCE)) end();
    if (block !== before) {
      seam = element("p", { class: "seam" },
        block
          ? [element("span", { class: "mono" }, `b_${String(block.n).padStart(3, "0")}`), element("span", null, block.close_reason), element("span", null, `${number(block.tokens)} tokens`)]
          : element("span", null, "open"));
      together.append(seam);
      before = block;
    }
    const state = element("span", { class: "state" });
    const node = said(message, { seq, state, offloaded: stored.has(seq) });
    node.id = `m${seq}`;
    const seen = picture.seenAt(seq);
    const goTo = (call, attributes, text) => element("button", { type: "button", class: "link", tabindex: -1, onclick: () => chooseCall(call), ...attributes }, text);
    const link = seen < 0 ? null : goTo(seen, { "aria-label": `#${seq}, first in call ${seen + 1}`, title: `first in call ${number(seen + 1)}`, "data-seq": seq }, `#${seq}`);
    const who = node.querySelector(".who");
    if (link) who.firstChild.replaceWith(link);
    const asked = message.by == null ? -1 : picture.askedAt(message.by);
    const links = [
      asked < 0 ? null : goTo(asked, { title: "what the model had seen when it wrote this" }, `${message.by === seq ? "answer of" : "asked for by"} call ${number(asked + 1)}`),
      seen < 0 || message.r !== "tool" ? null : goTo(seen, { title: "the first that had this result" }, `seen by call ${number(seen + 1)}`),
    ].filter(Boolean);
    who.after(...(links.length ? [element("p", { class: "calls" }, links.flatMap((one, at) => (at ? [" · ", one] : [one])))] : []));
    together.append(node);
    return { node, seam, state, link, links: link ? [link, ...links] : links, now: null };
  });
  end();
  return drawn;
}

/** Makes the links of a message those that the Tab key stops at: of thousands of messages, one is enough. */
function stopAt(seq) {
  if (!rows[seq]?.link) return;
  for (const link of rows[stop]?.links ?? []) link.tabIndex = -1;
  for (const link of rows[seq].links) link.tabIndex = 0;
  stop = seq;
}

/** From the number of a message the arrow keys go to that of the message above and below. */
function goAlong(event) {
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const seq = Number(event.target.dataset.seq) + by;
  if (!by || event.target.dataset.seq == null || !rows[seq]?.link) return;
  event.preventDefault();
  stopAt(seq);
  rows[seq].link.focus({ preventScroll: true });
  scrollPane(event.currentTarget, rows[seq].node, event.currentTarget.clientHeight / 3);
}

function mark(all) {
  all.forEach((now, seq) => {
    const row = rows[seq];
    if (row.now === now) return;
    row.now = now;
    row.node.classList.remove("whole", "light", "pinned", "folded", "absent", "elsewhere", "future");
    row.node.classList.add(now);
    row.state.textContent = STATES[now];
  });
}

/** The prompt of a call, part by part. */
function view(call) {
  const nodes = [];
  const entries = prompt(call);
  const shown = call.b == null ? null : picture.byNumber.get(call.b);
  let part = null;
  for (const entry of entries) {
    if (entry.part !== part) {
      part = entry.part;
      const tokens = entries.filter((other) => other.part === part).reduce((sum, other) => sum + other.said.k, 0);
      nodes.push(element("p", { class: "part" },
        element("b", null, PARTS[part]),
        part === "block" && shown ? element("span", { class: "mono" }, `b_${String(shown.n).padStart(3, "0")}`) : null,
        element("span", null, `${number(tokens)} tokens`)));
    }
    if (entry.pin != null) nodes.push(said(picture.messages[entry.pin], { seq: entry.pin, kind: "whole", link: true, tokens: false }));
    const kind = entry.of == null ? "made" : entry.isForm ? "light" : "whole";
    const node = said(entry.said, { seq: entry.of, kind, link: entry.of != null, who: entry.of == null && part !== "system" ? "foldback" : null, tokens: entry.pin == null });
    nodes.push(node);
  }
  if (picture.tools_tokens) {
    nodes.unshift(element("p", { class: "part" }, element("b", null, "Recall tools"),
      element("span", null, "search_block, list_blocks, load"), element("span", null, `${number(picture.tools_tokens)} tokens`)));
  }
  const own = toolsAt(call);
  if (own) nodes.unshift(own);
  return nodes;
}

/** One message as a row. */
function said(message, { seq, state, kind, link, who, offloaded, tokens }) {
  const machine = message.r === "tool";
  const name = message.n ? element("span", { dir: "auto" }, message.n) : null;
  const place = seq == null ? null : link
    ? element("button", { type: "button", class: "link", onclick: () => showMessage(seq), "aria-label": `Message ${seq} in the transcript` }, `#${seq}`)
    : element("span", null, `#${seq}`);
  const head = element("p", { class: "who" }, place, element("b", null, who ?? message.r), name,
    message.x ? element("span", { class: message.x === "not_made" ? null : "bad", title: OUTCOMES[message.x][1] }, OUTCOMES[message.x][0]) : null,
    offloaded ? element("span", null, "has a payload") : null, state,
    element("span", { class: "size" }, tokens === false ? "" : count(message.k, "token")));
  const calls = (message.c ?? []).map(([tool, text]) => {
    const node = element("div", { class: "call", dir: "auto" }, element("b", null, tool), " ");
    return opened(node, text, 180);
  });
  const text = message.t ? opened(element("div", { class: machine ? "text machine" : "text", dir: "auto" }), message.t, PEEK) : null;
  return element("article", { class: `said ${kind ?? ""}` }, head, text, calls);
}

/** Puts a text into a node: of a long one the beginning, and a button for the rest. */
function opened(node, text, most) {
  if (text.length <= most * 1.4) {
    node.append(text);
    return node;
  }
  const end = cutAt(text, most);
  const rest = document.createTextNode(`${text.slice(0, end).trimEnd()} … `);
  const more = element("button", { type: "button", class: "link more", "aria-expanded": "false" }, `all ${number(text.length)} characters`);
  let open = false;
  more.addEventListener("click", () => {
    open = !open;
    rest.data = open ? `${text}\n` : `${text.slice(0, end).trimEnd()} … `;
    more.textContent = open ? "less" : `all ${number(text.length)} characters`;
    more.setAttribute("aria-expanded", String(open));
  });
  node.append(rest, more);
  return node;
}

/** An end that splits no character and, if possible nearby, no word: at most `most` units and six
 * lines in. */
function cutAt(text, most) {
  let end = most;
  for (let lines = 0, at = text.indexOf("\n"); at >= 0 && at < most; at = text.indexOf("\n", at + 1)) {
    lines += 1;
    if (lines === 6) {
      end = at;
      break;
    }
  }
  const space = text.lastIndexOf(" ", end);
  if (space > end - 16) end = space;
  const code = text.charCodeAt(end - 1);
  return code >= 0xd800 && code < 0xdc00 ? end - 1 : end;
}

/** Shows a message in the transcript, which gets the focus, without moving anything else. */
function showMessage(seq) {
  showTab("all");
  const row = rows[seq];
  if (!row) return;
  document.querySelectorAll(".said.target").forEach((node) => node.classList.remove("target"));
  row.node.classList.add("target");
  stopAt(seq);
  row.node.tabIndex = -1;
  row.node.focus({ preventScroll: true });
  const pane = row.node.closest(".pane > div");
  const head = document.getElementById("views");
  const box = head.getBoundingClientRect();
  if (box.bottom < 200 || box.top > innerHeight * 0.2) head.scrollIntoView();
  scrollPane(pane, row.node, 60);
}

/** Scrolls a pane until the node is this far below its top; once more when what is in view by then has been laid out. */
function scrollPane(pane, node, below) {
  const scroll = () => { pane.scrollTop += node.getBoundingClientRect().top - pane.getBoundingClientRect().top - below; };
  scroll();
  requestAnimationFrame(scroll);
}
