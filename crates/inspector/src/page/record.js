// The record of a session without its replay: its blocks and its messages, read as far as one scrolls.

/** How many blocks and messages are read at once: drawing them interrupts scrolling as little as possible. */
const BLOCKS_READ = 48;
const MESSAGES_READ = 100;

/** Shows a message in the record, once it is drawn. */
let readMessage = null;

async function drawRecord(id, session) {
  for (const place of ["blocks", "record"]) document.getElementById(place).hidden = false;
  drawBlockList(id, session.blocks);
  const pane = element("div", { class: "reader", tabindex: 0, role: "region", "aria-label": "Messages" });
  const earlier = element("button", { type: "button", class: "plain" }, "‹ Earlier messages");
  const later = element("button", { type: "button", class: "plain" }, "Later messages ›");
  const line = element("input", { type: "number", min: 0, value: 0, "aria-label": "Message" });
  const told = element("span", { class: "small", role: "status" });
  let from = 0;
  let end = 0;
  let latest = 0;
  // Where the pages before this one begin, which may have fewer messages.
  let left = [];
  const read = async (first, target, before = []) => {
    from = Math.max(0, first);
    left = before;
    latest += 1;
    const own = latest;
    earlier.disabled = from === 0;
    const { total, rows, next } = await stretch(id, from, from + MESSAGES_READ, target);
    if (own !== latest) return;
    end = next ?? Math.min(from + MESSAGES_READ, total);
    // Large messages before it filled the answer.
    if (target >= end && target < total) return read(target, target, before);
    pane.replaceChildren(...rows);
    pane.scrollTop = 0;
    told.textContent = `messages ${number(from)}–${number(Math.max(from, end - 1))} of ${number(total)}`;
    line.max = Math.max(0, total - 1);
    later.disabled = end >= total;
    if (document.activeElement === document.body) pane.focus({ preventScroll: true });
    const node = pane.querySelector(".target");
    if (node) scrollPane(pane, node, 60);
  };
  earlier.addEventListener("click", () => read(left.at(-1) ?? from - MESSAGES_READ, undefined, left.slice(0, -1)));
  later.addEventListener("click", () => {
    later.disabled = true;
    read(end, undefined, [...left, from]);
  });
  readMessage = async (seq) => {
    await read(seq - (seq % MESSAGES_READ), seq);
    document.getElementById("record").scrollIntoView();
    pane.querySelector(".target")?.focus({ preventScroll: true });
  };
  fill("record",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "record-title" }, "Messages as they were recorded"))),
    element("div", { class: "tools" }, told, earlier, later,
      element("form", { onsubmit: (event) => { event.preventDefault(); readMessage(Number(line.value)); } },
        line, element("button", { type: "submit", class: "plain" }, "Go to message"))),
    pane);
  await read(0);
}

/**
 * The rows of some messages, how many there are in all, and the first message that an answer had no room for. A part that
 * cannot be read does not hide the others.
 */
async function stretch(id, from, to, target) {
  try {
    const list = await ask(`${sessionPath(id)}/messages`, { from, to });
    return { total: list.total, rows: list.messages.map((one) => recorded(one, one.seq === target)), next: list.next };
  } catch (error) {
    if (to - from <= 1) return { total: from + 1, rows: [problem(new Error(`Message ${from}: ${error.message}`))] };
    const middle = Math.floor((from + to) / 2);
    const first = await stretch(id, from, middle, target);
    if (first.next != null) return first;
    const second = await stretch(id, middle, to, target);
    return { total: Math.max(first.total, second.total), rows: [...first.rows, ...second.rows], next: second.next };
  }
}

/** A recorded message as a row. */
function recorded({ seq, message }, isTarget) {
  const content = message.content;
  const text = typeof content === "string" ? content
    : (content ?? []).map((part) => part.text ?? `[a part of the kind ${part.type}]`).join("\n");
  const calls = (message.tool_calls ?? []).map((call) => element("div", { class: "call", dir: "auto" },
    element("b", null, call.function?.name ?? call.type), " ", call.function?.arguments ?? ""));
  return element("article", { class: `said${isTarget ? " target" : ""}`, tabindex: isTarget ? -1 : null },
    element("p", { class: "who" }, element("span", null, `#${seq}`), element("b", null, message.role), message.name ? element("span", { dir: "auto" }, message.name) : null),
    text ? opened(element("div", { class: message.role === "tool" ? "text machine" : "text", dir: "auto" }), text, PEEK) : null, calls);
}

/** The list of blocks, which grows as its end comes near. */
async function drawBlockList(id, size) {
  const list = element("div", { role: "list" });
  const end = element("p", { "aria-hidden": "true" });
  const pane = element("div", { class: "blocks", tabindex: 0, role: "region", "aria-label": "Blocks in order of time" }, list, end);
  let shown = 0;
  let after = 0;
  let reading = false;
  const more = async () => {
    if (reading || after == null) return;
    reading = true;
    try {
      const page = await ask(`${sessionPath(id)}/blocks`, { after, limit: BLOCKS_READ });
      list.append(...batches(page.blocks.map(blockRow), CARDS_AT_ONCE, shown, size ?? -1));
      shown += page.blocks.length;
      after = page.next;
      if (after == null) end.remove();
      else {
        // Observed anew, so that an end that is still near is noticed.
        nearEnd.unobserve(end);
        nearEnd.observe(end);
      }
    } catch (error) {
      end.replaceWith(problem(error));
      after = null;
    }
    reading = false;
  };
  fill("blocks",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "blocks-title" }, "Blocks"),
      element("p", { class: "note" }, "Each ", term("block", "block"), " of the conversation, and why it closed."))),
    pane);
  const nearEnd = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) more(); }, { root: pane, rootMargin: "1200px" });
  await more();
}

function blockRow(block) {
  return element("div", { class: "block" },
    element("header", null,
      element("button", { type: "button", class: "link", onclick: () => readMessage(block.first_seq), title: block.block_id }, `b_${String(block.n).padStart(3, "0")}`),
      element("span", null, block.first_seq === block.last_seq ? `message ${block.first_seq}` : `messages ${block.first_seq}–${block.last_seq}`),
      element("span", null, block.block_type.replace("_", " "))),
    element("p", { class: "about", dir: "auto" }, block.core_semantic),
    element("p", { class: "why" }, element("b", null, REASONS[block.close_reason] ?? block.close_reason), "."),
    block.keywords.length
      ? element("ul", { class: "words", "aria-label": "Keywords" }, block.keywords.slice(0, 8).map((word) => element("li", { dir: "auto" }, word)))
      : null);
}
