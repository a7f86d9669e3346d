// The current choice, and what follows from it and the data: `INDEX`, and `pictureAt(n)` for the n-th picture.

/** The current choice: an entry of the index, and the index of a call. */
const chosen = { entry: 0, call: 0 };
let picture = null;
const listeners = [];

/** Calls `listener` after each change of the chosen call. */
const onCall = (listener) => listeners.push(listener);

function choosePicture(entry) {
  chosen.entry = entry;
  chosen.call = 0;
  const at = INDEX.entries[entry].picture;
  picture = at == null ? null : prepared(pictureAt(at));
  listeners.length = 0;
}

function prepared(data) {
  data.blockOf = new Array(data.messages.length).fill(null);
  for (const block of data.blocks) {
    for (let seq = block.first; seq <= block.last; seq += 1) data.blockOf[seq] = block;
    block.call = firstFrom(data.calls, block.at);
  }
  data.byNumber = new Map(data.blocks.map((block) => [block.n, block]));
  data.folds = data.calls.map(() => []);
  for (const block of data.blocks) if (block.call >= 0) data.folds[block.call].push(block);
  // The first call that has a message, or -1.
  data.seenAt = (seq) => firstFrom(data.calls, seq + 1);
  // The call whose answer a message is, or -1.
  data.askedAt = (seq) => {
    const call = firstFrom(data.calls, seq);
    return data.calls[call]?.at === seq ? call : -1;
  };
  data.sums = [0];
  for (const message of data.messages) data.sums.push(data.sums.at(-1) + message.k);
  return data;
}

/** The index of the first of these calls before which at least so many messages were said, or -1. */
function firstFrom(calls, messages) {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[middle].at < messages) low = middle + 1;
    else high = middle;
  }
  return low < calls.length ? low : -1;
}

function chooseCall(call, quiet) {
  if (!picture || picture.calls.length === 0) return;
  chosen.call = Math.max(0, Math.min(picture.calls.length - 1, call));
  for (const listener of listeners) listener(picture.calls[chosen.call], chosen.call);
  if (!quiet) remember();
}

/** Writes the current choice into the address, so that it can be shared and reloaded. */
function remember() {
  const address = new URLSearchParams();
  if (INDEX.entries.length > 1) address.set("conversation", chosen.entry + 1);
  address.set("call", chosen.call + 1);
  history.replaceState(null, "", `#${address}`);
}

/** The state of each recorded message at a call: whole, light, pinned, folded, absent or future. */
function states(call) {
  const found = new Array(picture.messages.length).fill("future");
  for (let seq = 0; seq < call.at; seq += 1) {
    const block = picture.blockOf[seq];
    found[seq] = block && block.at <= call.at ? "folded" : "absent";
  }
  for (const id of call.v) {
    if (id >= 0) {
      found[id] = "whole";
      continue;
    }
    const form = picture.forms[-1 - id];
    if (form.of != null) found[form.of] = "light";
    if (form.pin != null) found[form.pin] = "pinned";
  }
  return found;
}

/** The messages of a prompt, in order: what each says, the message that it represents, and its part. */
function prompt(call) {
  const suffix = call.v.length - call.s;
  const shown = call.b == null ? null : picture.byNumber.get(call.b);
  return call.v.map((id, at) => {
    const form = id < 0 ? picture.forms[-1 - id] : null;
    const of = form ? form.of : id;
    let part = "tail";
    if (at < call.h) part = "system";
    else if (at === call.h) part = "opening";
    else if (at >= suffix) part = "suffix";
    else if (shown && of != null && of <= shown.last) part = "block";
    return { said: form ?? picture.messages[id], of, pin: form?.pin, isForm: form != null, part };
  });
}
