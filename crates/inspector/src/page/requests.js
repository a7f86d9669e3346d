// What the gateway sent in the session, request by request: the bill.

const BILLS = [
  {
    button: "Tokens of each request",
    note: "What was sent, beside what the client asked to send.",
    noun: "Tokens",
    ours: "sent",
    values: (requests, side) => requests.map((one) => one[side].tokens),
  },
  {
    button: "Cost so far",
    note: "The input of all requests up to here, in tokens at the plain price, with what the model looked up. A steep stretch is where most of the cost arises.",
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
      element("p", null, `This request: ${parts(one)}`, one.recalls ? `, ${count(one.recalls, "look-up")} of the model` : ""),
    ];
  };
  const curve = curveOf({
    noun: "request", before, what: bill.noun, lines, tip,
    choose: list.callOf ? (at) => list.callOf.has(at) && goToCall(list.callOf.get(at)) : null,
    columns: [
      ["time", (at) => requests[at].at.slice(0, 19).replace("T", " ")], ["model", (at) => requests[at].model],
      ["read from the cache", (at) => requests[at].sent.read], ["written to it", (at) => requests[at].sent.written],
      ["answer", (at) => requests[at].output], ["look-ups", (at) => requests[at].recalls],
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
        element("p", { class: "note" }, bill.note, before > 0 ? ` The last ${number(requests.length)} of ${number(list.total)} requests; what the earlier ones cost is not in it.` : "")),
      choice,
      element("p", { class: "key" }, element("span", null, sample("c-ours"), "sent"), element("span", null, sample("c-rival c-0"), term("whole", "in full")))),
    element("p", { class: "small" }, sumsOf(requests)),
    curve.chart, curve.table,
    requests.length > 1
      ? element("div", { class: "expensive" },
        element("h3", null, "The most expensive requests"),
        element("ol", null, expensive.map(({ one, at }) => element("li", null,
          nameOf(list, before, at), ` · ${((cost(one) / (all || 1)) * 100).toFixed(0)} % of the cost: ${reason(requests, at)} · ${parts(one)} · `, when(one.at)))))
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

/** Why a request cost what it cost, as far as the one before it shows. */
function reason(requests, at) {
  const [one, last] = [requests[at], requests[at - 1]];
  const told = [];
  const leftOut = (request) => request.whole.tokens - request.sent.tokens;
  if (!last) told.push("the first one here");
  else if (one.model !== last.model) told.push("another model than the request before");
  else {
    const more = one.sent.tokens - last.sent.tokens;
    told.push(`${short(Math.abs(more))} ${more < 0 ? "fewer" : "more"} tokens than the request before`);
    const left = leftOut(one) - leftOut(last);
    if (left > 0 && leftOut(one) > 0) told.push(`${short(left)} more left out, which changes what the cache knows`);
    else if (one.sent.read < last.sent.read) told.push("less read from the cache, though no more was left out");
  }
  if (one.recalls) told.push(`${short(one.recalls_cost)} of the cost for ${count(one.recalls, "look-up")} of the model`);
  return told.join("; ");
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
