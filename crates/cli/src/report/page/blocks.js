// The timeline of blocks.

const REASONS = {
  topic: "The subject changed",
  gap: "Time passed",
  switch: "The work went elsewhere",
  loop: "A loop was complete",
  size: "It was full",
  end: "The conversation ended",
};

function drawBlocks() {
  const blocks = picture.blocks;
  const title = element("div", { class: "title" }, element("div", null,
    element("h2", { id: "blocks-title" }, count(blocks.length, "block")),
    element("p", { class: "note" },
      blocks.length
        ? "Each closed part of the conversation, as wide as its tokens. At the chosen call at most one of them is shown whole in the view; each of the others is represented by a line, or found by search."
        : "Nothing closed: the conversation is short enough to be shown whole.")));
  if (blocks.length === 0) {
    fill("blocks", title);
    return;
  }
  const bars = blocks.map((block) => {
    const bar = element("button", {
      type: "button", onclick: () => goToBlock(block),
      title: `${block.n}: ${block.core_semantic}`, tabindex: -1,
    });
    bar.style.flexGrow = Math.max(block.tokens, 1);
    return bar;
  });
  const cards = blocks.map(card);
  const list = element("ol", { class: "blocks", tabindex: 0, "aria-label": "Blocks in order of time" }, cards);
  fill("blocks", title, element("div", { class: blocks.length > 60 ? "ribbon dense" : "ribbon", "aria-hidden": "true" }, bars), list);
  onCall((call) => {
    blocks.forEach((block, at) => {
      const state = block.at > call.at ? "future" : call.b === block.n ? "shown" : "";
      bars[at].className = state;
      cards[at].className = `block ${state}`;
    });
  });
}

function card(block) {
  const range = block.first === block.last ? `message ${block.first}` : `messages ${block.first}–${block.last}`;
  return element("li", { class: "block" },
    element("header", null,
      element("button", { type: "button", class: "link", onclick: () => goToBlock(block), title: block.id }, `b_${String(block.n).padStart(3, "0")}`),
      element("span", null, range),
      element("span", null, block.block_type.replace("_", " ")),
      element("span", { class: "sizes" }, `${number(block.tokens)} → ${block.line_tokens} tokens`)),
    element("p", { class: "about", dir: "auto" }, block.core_semantic),
    element("p", { class: "why" }, element("b", null, REASONS[block.close_reason] ?? block.close_reason), ". ", sentence(block.evidence)),
    block.keywords.length
      ? element("ul", { class: "words", "aria-label": "Keywords" }, block.keywords.slice(0, 8).map((word) => element("li", { dir: "auto" }, word)))
      : null);
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.。!?]$/.test(text) ? "" : "."}` : "");

/** The first call after the block's end, and its first message in the transcript. */
function goToBlock(block) {
  chooseCall(block.call >= 0 ? block.call : picture.calls.length - 1);
  showMessage(block.first);
}
