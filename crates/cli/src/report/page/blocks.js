// The timeline of blocks.

const REASONS = {
  topic: "The subject changed",
  gap: "Time passed",
  switch: "The work went elsewhere",
  loop: "A loop was complete",
  size: "It was full",
  end: "The conversation ended",
};

/** The most bars of the ribbon. Where there are more blocks, each bar is several. */
const MOST_BARS = 500;
/** How many cards are laid out at once, which takes less than a few frames; they fill rows of one, two or three. */
const CARDS_AT_ONCE = 12;

function drawBlocks() {
  const blocks = picture.blocks;
  const title = element("div", { class: "title" }, element("div", null,
    element("h2", { id: "blocks-title" }, count(blocks.length, "block")),
    element("p", { class: "note" },
      blocks.length
        ? ["Each ", term("block", "block"), " of the conversation, as wide as its tokens. At the chosen call at most one of them is shown ", term("whole", "whole"), " in the view; each of the others is represented by a line, or found by search."]
        : "Nothing closed: the conversation is short enough to be shown whole.")));
  if (blocks.length === 0) {
    fill("blocks", title);
    return;
  }
  const bars = ribbon(blocks);
  const cards = blocks.map(card);
  const list = element("div", { class: "blocks", tabindex: 0, role: "region", "aria-label": "Blocks in order of time" },
    element("div", { role: "list" }, batches(cards, CARDS_AT_ONCE, 0, cards.length)));
  fill("blocks", title,
    element("div", { class: blocks.length > 60 ? "ribbon dense" : "ribbon", "aria-hidden": "true" }, bars.map((bar) => bar.node)), list);
  const state = (call, block) => (block.at > call.at ? "future" : call.b === block.n ? "shown" : "");
  onCall((call) => {
    for (const bar of bars) {
      const found = bar.blocks.map((block) => state(call, block));
      rename(bar.node, found.includes("shown") ? "shown" : found[0]);
    }
    blocks.forEach((block, at) => rename(cards[at], `block ${state(call, block)}`));
  });
}

/** The bars of the ribbon: each stands for some blocks in a row, and is as wide as their tokens. */
function ribbon(blocks) {
  const most = Math.ceil(blocks.length / MOST_BARS);
  const bars = [];
  for (let at = 0; at < blocks.length; at += most) {
    const some = blocks.slice(at, at + most);
    const [first, last] = [some[0], some.at(-1)];
    const node = element("button", {
      type: "button", onclick: () => goToBlock(first), tabindex: -1,
      title: first === last ? `${first.n}: ${first.core_semantic}` : `${first.n}–${last.n}: ${first.core_semantic}, and others`,
    });
    node.style.flexGrow = Math.max(some.reduce((sum, block) => sum + block.tokens, 0), 1);
    bars.push({ node, blocks: some });
  }
  return bars;
}

/** Sets the class of a node if it is another one. */
function rename(node, name) {
  if (node.className !== name) node.className = name;
}

function card(block) {
  const range = block.first === block.last ? `message ${block.first}` : `messages ${block.first}–${block.last}`;
  return element("div", { class: "block" },
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
