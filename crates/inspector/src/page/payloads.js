// The payloads as the store has them, whole or by lines.

/** How many lines are shown at once. */
const VIEW_LINES = 200;

/** The payload that is open. */
let openedPayload = null;

async function drawPayloads(id) {
  const title = element("div", { class: "title" }, element("div", null,
    element("h2", { id: "stored-title" }, "Payloads, line by line"),
    element("p", { class: "note" }, "Every ", term("payload", "payload"), " of the session, by its lines. A link keeps the lines.")));
  const viewer = element("div", { class: "viewer", id: "viewer" });
  const list = element("div", { class: "picker", tabindex: 0, role: "region", "aria-label": "Payloads of the session" });
  fill("stored", title, list, viewer);
  const add = async (after) => {
    const found = await ask(`${sessionPath(id)}/payloads`, { after, limit: 200 });
    list.append(...found.payloads.map((one) => element("button", {
      type: "button", class: "plain pick", "data-ref": one.ref, onclick: () => showPayload(id, one.ref, 1),
    }, element("span", { class: "mono" }, one.ref.replace("store://", "")), ` ${one.kind}, ${one.kind === "binary" ? bytes(one.bytes) : count(one.lines, "line")}`)));
    if (found.next != null) {
      const more = element("button", {
        type: "button", class: "plain",
        onclick: () => add(found.next).then(() => { more.nextElementSibling?.focus(); more.remove(); }, (error) => more.replaceWith(problem(error))),
      }, "more");
      list.append(more);
    }
    return found.payloads.length;
  };
  try {
    const any = await add(null);
    if (!any) list.replaceWith(element("p", { class: "note" }, "This session has none."));
  } catch (error) {
    list.replaceWith(problem(error));
  }
}

/** Opens the payload that the address names, at its lines. */
async function showAskedPayload(id, asked) {
  const lines = /^(\d+)(?:-(\d+))?/.exec(asked.get("lines") ?? "1");
  await showPayload(id, asked.get("payload"), Number(lines?.[1] ?? 1), lines?.[2] ? Number(lines[2]) : null);
}

/** Opens a payload from a line on. `upTo` marks the lines that were meant. */
async function showPayload(id, reference, first, upTo) {
  const viewer = document.getElementById("viewer");
  openedPayload = `${reference} ${first}`;
  const own = openedPayload;
  const from = Math.max(1, upTo == null ? first : first - 3);
  let part;
  try {
    part = await ask(`${sessionPath(id)}/payloads/${encodeURIComponent(reference)}`, { lines: `${from}-${from + VIEW_LINES - 1}` });
  } catch (error) {
    viewer.replaceChildren(problem(error));
    document.getElementById("stored").scrollIntoView();
    return;
  }
  if (own !== openedPayload) return;
  for (const pick of document.querySelectorAll(".pick")) pick.setAttribute("aria-pressed", String(pick.dataset.ref === part.ref));
  const go = (to, name) => element("button", { type: "button", class: "plain", disabled: to < 1 || to > part.lines, onclick: () => showPayload(id, reference, to) }, name);
  const line = element("input", { type: "number", min: 1, max: Math.max(part.lines, 1), value: part.first_line || 1, "aria-label": "Line" });
  const text = part.text ?? part.base64;
  const link = () => `${location.origin}${sessionLink(id, { payload: part.ref, lines: `${upTo == null ? part.first_line : first}-${upTo ?? part.last_line}` })}`;
  const lines = (part.text ?? "").replace(/\n$/, "").split("\n");
  const isMeant = (n) => upTo != null && n >= first && n <= upTo;
  const rows = part.text == null
    ? element("pre", { tabindex: 0 }, part.base64)
    : element("ol", { class: "lines", tabindex: 0, "aria-label": `Lines of ${part.ref}` }, lines.map((content, at) =>
      element("li", { value: part.first_line + at, class: isMeant(part.first_line + at) ? "meant" : null, dir: "auto" }, content || " ")));
  refill("viewer",
    element("div", { class: "tools" },
      element("b", { class: "mono" }, part.ref),
      element("span", { class: "small" }, part.text == null ? `${part.kind}, ${bytes(part.bytes)}, as base64` : `${part.kind}, lines ${number(part.first_line)}–${number(part.last_line)} of ${number(part.lines)}, ${bytes(part.bytes)}`),
      go(part.first_line - VIEW_LINES < 1 && part.first_line > 1 ? 1 : part.first_line - VIEW_LINES, "‹ Before"),
      go(part.last_line + 1, "After ›"),
      element("form", { onsubmit: (event) => { event.preventDefault(); showPayload(id, reference, Number(line.value)); } }, line, element("button", { type: "submit", class: "plain" }, "Go to line")),
      copyButton("Copy lines", () => text), copyButton("Copy link", link)),
    rows,
    part.next && part.last_line < Math.min(part.lines, from + VIEW_LINES - 1) ? element("p", { class: "note" }, `The lines are long, so the answer ends at ${part.next}.`) : null);
  if (first > 1 || upTo != null || rows.contains(document.activeElement)) document.getElementById("stored").scrollIntoView();
  const meant = viewer.querySelector(".meant");
  if (meant) rows.scrollTop = meant.offsetTop - rows.offsetTop - 40;
  if (upTo == null) return;
  rows.focus({ preventScroll: true });
  const pick = document.querySelector(".pick[aria-pressed='true']");
  if (pick) scrollPane(pick.parentElement, pick, 40);
}
