// The project's own words, and what each of them means.

const TERMS = {
  block: "Consecutive messages about one thing, three to five as a rule. A closed block never changes.",
  branch: "One path from the first message of a conversation to a last one. A client that goes back and continues differently opens a new one.",
  cache: "Providers keep the beginning of a request for some minutes. What a later request repeats of it is read from there, at a tenth of the plain price as a rule; with some providers, what is new is written to it at 1.25 times that price.",
  folded: "A folded block has left what the model sees: a line remains there, or only the recall tools. Nothing is summarised, and nothing is lost.",
  kept: "Sent as it was recorded, with nothing changed in it.",
  payload: "A large input or output of a tool, kept outside its message, byte for byte.",
  recall: "To bring back text that the model does not see any more, word for word. The model searches the blocks, lists them, or loads one by its name.",
  weighted: "Tokens, weighted by price: a token at the plain price counts as one, one that is read from the cache as a tenth (or what the provider's price list says), one that is written to it as 1.25. The plain price of a token times this number is what the input costs; answers are not in it.",
  whole: "With nothing left out: a block with all its messages and no line in its place, or a request as the client wrote it.",
};

/** A word that opens its explanation at a press. It is written as it stands in its sentence. */
function term(name, word) {
  const id = `term-${name}`;
  if (!document.getElementById(id)) {
    document.getElementById("main").append(element("div", { id, class: "explained", popover: true, role: "note" },
      element("b", null, name), " ", TERMS[name]));
  }
  return element("button", { type: "button", class: "term", popovertarget: id }, word);
}
