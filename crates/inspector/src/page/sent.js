// What the gateway really sent at a call, as it recorded it.

const WHY_WHOLE = {
  slow_store: "It was sent whole, because the store did not answer in time.",
  refused: "It was sent whole, because the provider refused the shortened one.",
  refused_before: "It was sent whole, because the provider had refused a shortened one of this conversation.",
};

/** More tools than this are shown at a press. */
const TOOLS_SHOWN = 12;

/** The request of each call, by their indices. Where it is recorded which messages a request had, that says which call it
 * is; otherwise there have to be as many requests as calls. Of several with the same messages, the last one counts. */
function requestsOfCalls(list) {
  const of = new Map();
  const isOneEach = list.requests.length === list.total && list.total === picture.calls.length;
  list.requests.forEach((request, at) => {
    const call = request.after == null ? (isOneEach ? at : -1) : firstFrom(picture.calls, request.after);
    if (call >= 0 && (request.after == null || picture.calls[call].at === request.after)) of.set(call, at);
  });
  return of;
}

/** Lets the model's view show what was sent at each call of which that is recorded, and says where it is not. */
function showSent(id, list) {
  const known = new Map();
  const requestAt = (call) => list.requests[list.ofCall.get(call)];
  const contentsOf = (request) => {
    if (!known.has(request.number)) {
      const asked = ask(`${sessionPath(id)}/requests/${request.number}`);
      known.set(request.number, asked);
      asked.catch(() => known.delete(request.number));
    }
    return known.get(request.number);
  };
  sentAt = (call) => {
    const request = requestAt(call);
    return request?.after == null ? null : contentsOf(request).then((contents) => sentView(picture.calls[call], request, contents));
  };
  onCall((_, call) => {
    const request = requestAt(call);
    const isRecorded = request?.after != null;
    document.querySelector("#pane-view > header h3").textContent = isRecorded ? "What was sent" : "What a replay sends";
    document.getElementById("really").textContent = isRecorded
      ? `Request ${number(request.number)}, as the gateway recorded it.`
      : request
        ? `Made again from the messages; which of them request ${number(request.number)} had is not recorded. It had ${tokensOf(request)}.`
        : "Made again from the messages. The gateway may have sent more at this call.";
  });
  chooseCall(chosen.call, true);
}

function tokensOf({ sent, is_estimate }) {
  const read = sent.read ? `, and ${number(sent.read)} of them from the cache` : "";
  return `${count(sent.tokens, "token")}, the client's own tools included${is_estimate ? " (estimated)" : ""}${read}`;
}

/** What the view shows of a request in the place of a replayed prompt. */
function sentView(call, request, contents) {
  const states = picture.messages.map((_, seq) => (seq < call.at ? "elsewhere" : "future"));
  for (const [from, to] of contents.asked) states.fill("folded", from, to);
  const nodes = [];
  const about = WHY_WHOLE[contents.whole] ?? (contents.is_as_asked ? "It went as the client sent it: nothing was left out." : null);
  if (about) nodes.push(element("p", { class: "note" }, about));
  const counted = { kept: 0, without_thoughts: 0, shortened: 0, looked_up: 0, added: 0 };
  for (const { kind, from, to } of contents.sent) counted[kind] += from == null ? 1 : to - from;
  const absent = contents.left_out.reduce((sum, [from, to]) => sum + to - from, 0);
  nodes.push(element("p", { class: "note" }, `${count(counted.kept, "message")} `, term("kept", "kept"), [
    [counted.without_thoughts, "without the model's thinking"], [counted.shortened, "shortened"],
    [counted.looked_up, "with recalls"], [absent, "left out"], [counted.added, "added by the gateway"],
  ].filter(([n]) => n).map(([n, what]) => `, ${number(n)} ${what}`), "."));
  nodes.push(ownTools(contents.tools, "that the client declared", "Which tools the client declared is not recorded."));
  if (contents.has_tools) {
    nodes.push(element("p", { class: "part" }, element("b", null, "Recall tools"), element("span", null, "declared by the gateway")));
  }
  let [messages, end] = [0, 0];
  const add = (node) => {
    nodes.push(node);
    messages += 1;
  };
  const recorded = (part, state) => {
    for (let seq = part.from; seq < part.to; seq += 1) {
      add(said(picture.messages[seq], { seq, kind: "whole", link: true, state: state ? element("span", { class: "state" }, state) : null }));
    }
  };
  for (const part of contents.sent) {
    if (part.from != null) {
      const gone = contents.left_out.filter(([from, to]) => from >= end && to <= part.from);
      nodes.push(...gone.map(leftOut));
      end = Math.max(end, part.to);
      states.fill(part.kind === "shortened" ? "light" : "whole", part.from, part.to);
    }
    if (part.kind === "kept") recorded(part);
    else if (part.kind === "without_thoughts") recorded(part, "without the model's thinking");
    else if (part.kind === "looked_up" && !part.messages) recorded(part, "with recalls by the model, whose words are not kept");
    else if (!part.messages) add(said({ r: "foldback", t: "", k: 0 }, { seq: part.from, kind: "made", link: part.from != null, tokens: false, state: element("span", { class: "state" }, "its words are not kept") }));
    else {
      const kind = part.kind === "shortened" ? "light" : "made";
      const who = { added: "foldback", looked_up: "recalled" }[part.kind];
      for (const message of part.messages.flatMap(readMessages)) {
        add(said(message, { seq: part.from, kind, link: part.from != null, who, tokens: false }));
      }
    }
  }
  nodes.push(...contents.left_out.filter(([from]) => from >= end).map(leftOut));
  return {
    told: ["The model got ", element("b", null, count(request.sent.tokens, "token")), `${request.is_estimate ? " (estimated)" : ""}, the client's own tools included`],
    head: `${count(messages, "message")} · ${number(request.sent.tokens)} tokens with tools`,
    states,
    nodes,
  };
}

/** The agent's own tools in a request, by name; null where they are not recorded. */
function ownTools(names, whose, unknown) {
  if (names == null) return element("p", { class: "note" }, unknown);
  if (names.length === 0) return element("p", { class: "note" }, `There were no tools ${whose}.`);
  return element("details", { class: "own-tools", open: names.length <= TOOLS_SHOWN },
    element("summary", null, element("b", null, count(names.length, "tool")), ` ${whose}`),
    element("p", { class: "mono", dir: "auto" }, names.join(", ")));
}

function leftOut([from, to]) {
  return element("p", { class: "part left-out" }, element("b", null, "Left out"),
    element("span", null, to - from === 1 ? `#${from}` : `#${from}–#${to - 1}`),
    element("span", null, count(picture.sums[to] - picture.sums[from], "token")));
}

/** The messages in a message of any API: results that a message holds are messages of their own. */
function readMessages(message) {
  const parts = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content ?? (message.type ? [message] : []);
  const textOf = (content) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? `[${part.type}]`).join("\n"));
  const own = { r: message.role ?? "tool", n: message.name, t: "", c: [], k: 0 };
  const results = [];
  for (const part of parts) {
    if (part.type === "tool_result") results.push({ r: "tool", t: textOf(part.content), c: [], k: 0 });
    else if (part.type === "function_call_output") results.push({ r: "tool", t: textOf(part.output), c: [], k: 0 });
    else if (part.type === "tool_use") own.c.push([part.name, JSON.stringify(part.input)]);
    else if (part.type === "function_call") own.c.push([part.name, part.arguments]);
    else own.t += `${own.t ? "\n" : ""}${part.text ?? part.thinking ?? `[${part.type ?? "message"}]`}`;
  }
  for (const call of message.tool_calls ?? []) own.c.push([call.function?.name ?? call.type, call.function?.arguments ?? ""]);
  if (own.c.length > 0 && !message.role) own.r = "assistant";
  return [...(own.t || own.c.length > 0 ? [own] : []), ...results];
}
