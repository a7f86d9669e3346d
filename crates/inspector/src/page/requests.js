// What the gateway sent in the session, request by request: the bill.

const BILLS = [
  {
    button: "Tokens of each request",
    note: () => "What was sent, beside what the client asked to send.",
    noun: "Tokens",
    ours: "sent",
    values: (requests, side) => requests.map((one) => one[side].tokens),
  },
  {
    button: "Cost so far",
    note: () => ["The input of all requests up to here, in ", term("weighted", "weighted tokens"), ", with the model's ", term("recall", "recalls"), ". A steep stretch is where most of the cost arises."],
    noun: "Cost",
    ours: "cost so far",
    values: (requests, side) => {
      let sum = 0;
      return requests.map((one) => (sum += one[side].cost + (side === "sent" ? one.recalls_cost : 0)));
    },
  },
];

/** How many of the most expensive requests are listed. */
const EXPENSIVE = 5;

/** Draws what was sent. A request leads to its call in the replay, if that is known. */
async function drawRequests(id, replayed) {
  const list = await ask(`${sessionPath(id)}/requests`);
  if (list.total === 0) return;
  document.getElementById("bill").hidden = false;
  paintRequests(list, BILLS[1]);
  await replayed.catch(() => {});
  if (!picture) return;
  list.ofCall = requestsOfCalls(list);
  list.callOf = new Map([...list.ofCall].map(([call, at]) => [at, call]));
  paintRequests(list, list.bill);
  showSent(id, list);
}

/** Shows the call of a request. */
function goToCall(call) {
  chooseCall(call);
  document.getElementById("views").scrollIntoView();
}

function paintRequests(list, bill) {
  list.bill = bill;
  const { requests } = list;
  const before = list.total - requests.length;
  const choice = element("div", { class: "choice", role: "group", "aria-label": "What the curve shows" },
    BILLS.map((one) => element("button", {
      type: "button", class: "plain", "aria-pressed": String(one === bill),
      onclick: () => {
        paintRequests(list, one);
        document.querySelector('#bill .choice [aria-pressed="true"]').focus();
      },
    }, one.button)));
  const lines = [
    { title: "sent", kind: "c-ours", values: bill.values(requests, "sent") },
    { title: "in full", kind: "c-rival c-0", values: bill.values(requests, "whole") },
  ];
  const tip = (at) => {
    const one = requests[at];
    return [
      element("b", null, `request ${number(before + at + 1)}`), " ", when(one.at),
      element("dl", null,
        element("dt", { class: "ours" }, bill.ours), element("dd", { class: "ours" }, number(lines[0].values[at])),
        element("dt", null, "in full"), element("dd", null, number(lines[1].values[at]))),
      element("p", null, `This request: ${parts(one)}`, one.recalls ? `, ${count(one.recalls, "recall")} by the model` : ""),
    ];
  };
  const curve = curveOf({
    noun: "request", before, what: bill.noun, lines, tip,
    choose: list.callOf ? (at) => list.callOf.has(at) && goToCall(list.callOf.get(at)) : null,
    columns: [
      ["time", (at) => when(requests[at].at) ?? ""], ["model", (at) => requests[at].model],
      ["read from the cache", (at) => requests[at].sent.read], ["written to it", (at) => requests[at].sent.written],
      ["answer", (at) => requests[at].output], ["recalls", (at) => requests[at].recalls],
    ],
  });
  const cost = (one) => one.sent.cost + one.recalls_cost;
  const expensive = requests.map((one, at) => ({ one, at })).sort((a, b) => cost(b.one) - cost(a.one)).slice(0, EXPENSIVE);
  const all = requests.reduce((sum, one) => sum + cost(one), 0);
  const isOpen = document.querySelector("#bill .figures")?.open ?? false;
  refill("bill",
    element("div", { class: "title" },
      element("div", null,
        element("h2", { id: "bill-title" }, "What was sent, and what it cost"),
        element("p", { class: "note" }, bill.note(), before > 0 ? ` The last ${number(requests.length)} of ${number(list.total)} requests; what the earlier ones cost is not in it.` : "")),
      choice,
      element("p", { class: "key" }, element("span", null, sample("c-ours"), "sent"), element("span", null, sample("c-rival c-0"), term("whole", "in full")))),
    element("p", { class: "small" }, sumsOf(requests)),
    curve.chart, curve.table,
    requests.length > 1
      ? element("div", { class: "expensive" },
        element("h3", null, "The most expensive requests"),
        element("ol", null, expensive.map(({ one, at }) => element("li", null,
          nameOf(list, before, at), ` · ${((cost(one) / (all || 1)) * 100).toFixed(0)} % of the cost: ${reason(requests, at, before)} · ${parts(one)} · `, when(one.at)))))
      : null);
  curve.table.open = isOpen;
}

function nameOf(list, before, at) {
  const name = `request ${number(before + at + 1)}`;
  const call = list.callOf?.get(at);
  return call == null
    ? element("b", null, name)
    : element("button", { type: "button", class: "link", onclick: () => goToCall(call), title: "what the model got" }, name);
}

/** A provider that read this part of what its cache could hold missed nothing: caches keep whole runs of tokens. */
const NEARLY_ALL = 0.9;

/** Providers keep a cache at least this long, in minutes. */
const CACHE_MINUTES = 5;

/** Why a request cost what it cost, as far as the one before it shows; `before` is the number of those not listed. */
function reason(requests, at, before) {
  const [one, last] = [requests[at], requests[at - 1]];
  const told = [];
  if (!last) {
    const first = before === 0 ? "it is the first one" : "the one before it is not listed";
    told.push(`${first}${!one.is_estimate && one.sent.read === 0 ? "; nothing of this one was in the cache" : ""}`);
  } else if (one.model !== last.model) told.push("it asked another model than the request before, and each model has a cache of its own");
  else {
    const more = one.sent.tokens - last.sent.tokens;
    if (more !== 0) told.push(`it had ${short(Math.abs(more))} ${more < 0 ? "fewer" : "more"} tokens than the request before`);
    const missed = cacheMissed(one, last);
    if (missed) told.push(missed);
  }
  if (one.recalls) told.push(`${count(one.recalls, "recall")} by the model took ${short(one.recalls_cost)} of the cost`);
  return told.join("; ");
}

/** Why the provider could use less of its cache than the request before had put there; null if that is not so. */
function cacheMissed(one, last) {
  const rest = one.sent.written ? "wrote the rest to it again" : "charged the rest at the full price";
  const from = (seq) => (one.is_estimate
    ? `a cache was of no use from message ${number(seq)} on (the provider did not report what it used)`
    : `the provider could not use its cache from message ${number(seq)} on and ${rest}`);
  // What the provider read shows whether its cache was of less use; of an estimate, only that it could be.
  const kept = last.sent.written ? last.sent.read + last.sent.written : last.sent.tokens;
  if (!one.is_estimate && one.sent.read >= NEARLY_ALL * kept) return null;
  const folded = one.changed_from == null ? 0 : one.left_out - last.left_out;
  // With the first messages that it leaves out, the gateway declares its own tools.
  if (one.tools_changed && folded <= 0) {
    return one.is_estimate
      ? "it had other tools, which come before the messages, so a cache was of no use (the provider did not report what it used)"
      : `it had other tools, which come before the messages, so the provider could not use its cache and ${rest}`;
  }
  if (one.changed_from != null) {
    const left = `${count(folded, "more message")} ${folded === 1 ? "was" : "were"} left out`;
    if (folded > 0 && one.tools_changed) {
      return one.is_estimate
        ? `${left}, and its tools, which come before the messages, changed, so a cache was of no use (the provider did not report what it used)`
        : `${left}, and its tools, which come before the messages, changed, so the provider could not use its cache and ${rest}`;
    }
    return folded > 0
      ? `${left}, so ${from(one.changed_from)}`
      : `an earlier message was sent in another form, so ${from(one.changed_from)}`;
  }
  const left = one.whole.tokens - one.sent.tokens - (last.whole.tokens - last.sent.tokens);
  if (one.left_out == null && !one.is_estimate && left > 0 && one.sent.tokens < one.whole.tokens) {
    return one.sent.read
      ? `${short(left)} more tokens were left out, so the provider could not use its cache for what followed them and ${rest}`
      : `${short(left)} more tokens were left out, so the provider could not use its cache at all`;
  }
  if (one.is_estimate) return null;
  const minutes = Math.round((Date.parse(one.at) - Date.parse(last.at)) / 60_000);
  return minutes >= CACHE_MINUTES
    ? `it came ${count(minutes, "minute")} after the request before, and the provider had dropped some or all of its cache`
    : "the provider used less of its cache, although the request began like the one before";
}

/** What the cache did with all of these requests. */
function sumsOf(requests) {
  const sum = (of) => requests.reduce((all, one) => all + of(one), 0);
  const [tokens, read, written] = [sum((one) => one.sent.tokens), sum((one) => one.sent.read), sum((one) => one.sent.written)];
  const share = tokens ? ` (${((read / tokens) * 100).toFixed(0)} %)` : "";
  return [
    read ? [`${short(read)} tokens read from the `, term("cache", "cache"), share] : ["nothing read from a ", term("cache", "cache")],
    written ? `${short(written)} written to it` : null,
    `${short(tokens - read - written)} outside it`,
    `${short(sum((one) => one.output))} in answers`,
  ].filter(Boolean).flatMap((part, at) => (at ? [" · ", part] : [part]));
}

/** The parts of a request's tokens, by what the cache did with them. */
function parts(one) {
  const { tokens, read, written } = one.sent;
  const told = [
    read ? `${short(read)} read from the cache` : null,
    written ? `${short(written)} written to ${read ? "it" : "the cache"}` : null,
    tokens - read - written > 0 ? `${short(tokens - read - written)} outside ${read || written ? "it" : "the cache"}` : null,
    one.is_estimate ? "estimated" : null,
  ].filter(Boolean);
  return told.join(", ");
}
