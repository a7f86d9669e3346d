// What the gateway sent in the session, request by request: the bill.

const BILLS = [
  {
    button: "Tokens of each request",
    note: "What was sent, beside what the client asked to send.",
    noun: "Tokens",
    values: (requests, side) => requests.map((one) => one[side].tokens),
  },
  {
    button: "Cost so far",
    note: "The input of all requests up to here, in tokens at the plain price, with what the model looked up. A steep stretch is where most of the cost arises.",
    noun: "Cost",
    values: (requests, side) => {
      let sum = 0;
      return requests.map((one) => (sum += one[side].cost + (side === "sent" ? one.recalls_cost : 0)));
    },
  },
];

/** How many of the most expensive requests are listed. */
const EXPENSIVE = 5;

async function drawRequests(id) {
  const list = await ask(`${sessionPath(id)}/requests`);
  if (list.total === 0) return;
  document.getElementById("bill").hidden = false;
  paintRequests(list, BILLS[1]);
}

function paintRequests(list, bill) {
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
        element("dt", { class: "ours" }, "sent"), element("dd", { class: "ours" }, number(lines[0].values[at])),
        element("dt", null, "in full"), element("dd", null, number(lines[1].values[at]))),
      element("p", null, parts(one)),
    ];
  };
  const curve = curveOf({
    noun: "request", before, what: bill.noun, lines, tip,
    columns: [["time", (at) => requests[at].at.slice(0, 19).replace("T", " ")], ["model", (at) => requests[at].model]],
  });
  const cost = (one) => one.sent.cost + one.recalls_cost;
  const expensive = requests.map((one, at) => ({ one, at })).sort((a, b) => cost(b.one) - cost(a.one)).slice(0, EXPENSIVE);
  const all = requests.reduce((sum, one) => sum + cost(one), 0);
  fill("bill",
    element("div", { class: "title" },
      element("div", null,
        element("h2", { id: "bill-title" }, "What was sent, and what it cost"),
        element("p", { class: "note" }, bill.note, before > 0 ? ` The last ${number(requests.length)} of ${number(list.total)} requests; what the earlier ones cost is not in it.` : "")),
      choice,
      element("p", { class: "key" }, element("span", null, sample("c-ours"), "sent"), element("span", null, sample("c-rival c-0"), "in full"))),
    curve.chart, curve.table,
    requests.length > 1
      ? element("div", { class: "expensive" },
        element("h3", null, "The most expensive requests"),
        element("ol", null, expensive.map(({ one, at }) => element("li", null,
          element("b", null, `request ${number(before + at + 1)}`), ` · ${((cost(one) / (all || 1)) * 100).toFixed(0)} % of the cost · `, when(one.at), ` · ${parts(one)}`))))
      : null);
}

/** The parts of a request's tokens, by what the cache did with them. */
function parts(one) {
  const { tokens, read, written } = one.sent;
  const told = [
    read ? `${short(read)} read from the cache` : null,
    written ? `${short(written)} written to ${read ? "it" : "the cache"}` : null,
    tokens - read - written > 0 ? `${short(tokens - read - written)} outside ${read || written ? "it" : "the cache"}` : null,
    one.recalls ? `${count(one.recalls, "look-up")} of the model` : null,
    one.is_estimate ? "estimated" : null,
  ].filter(Boolean);
  return told.join(", ");
}
