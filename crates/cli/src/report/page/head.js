// The conversation's name, the figures beside those of the other policies, the proof.

const FIGURES = [
  ["tokens sent", "input_tokens", "sent"],
  ["largest call", "peak_tokens", "largest call"],
  ["cost with a prompt cache, in weighted tokens", "cost_units", "cost, weighted tokens"],
];

function drawHead() {
  const report = INDEX.entries[chosen.entry].report;
  const facts = [
    count(report.messages, "message"),
    count(report.calls, "call"),
    `${number(report.tokens)} tokens said in all`,
  ];
  fill(
    "head",
    element("h1", { dir: "auto" }, report.id),
    element("p", { class: "eyebrow" }, facts.join(" · ")),
    element("p", { class: "lead" }, lead(report)),
    sums(report),
    proofs(report),
    report.problems.map((problem) => element("p", { class: "note", dir: "auto" }, problem)),
  );
}

/** The result in plain words, also when foldback costs more. */
function lead(report) {
  if (report.calls === 0) return "No model is called in this conversation, so nothing is sent.";
  const told = [
    `In ${count(report.calls, "call")} foldback sends `,
    element("b", { class: "hero" }, `${number(report.input_tokens)} tokens`),
    ": ",
  ];
  const full = report.baselines.full;
  const same = (policy) => policy.name !== "full" && report.baselines[policy.name].input_tokens === full.input_tokens;
  INDEX.policies.filter((policy) => !same(policy)).forEach((policy, at) => {
    const share = compared(report.input_tokens, report.baselines[policy.name].input_tokens);
    told.push(at ? ", " : "", element("b", null, share), ` ${share.startsWith("about") ? "as" : "than"} ${policy.title}`);
  });
  told.push(". ");
  for (const policy of INDEX.policies) {
    const gone = report.baselines[policy.name].forgotten;
    const all = count(report.messages, "message");
    if (gone > 0) told.push(`With ${policy.title}, ${number(gone)} of the ${all} are gone by the end. `);
    if (same(policy)) told.push(`${policy.title[0].toUpperCase()}${policy.title.slice(1)} would keep everything, too: there is too little to cut. `);
  }
  if (report.input_tokens > full.input_tokens) {
    told.push("For so short a conversation the recall tools and their rule, which are in every prompt, cost more than folding saves.");
  } else if (report.cost_units > full.cost_units) {
    told.push("With a prompt cache it still costs more than keeping everything, because a fold moves what was cached.");
  }
  return told;
}

function sums(report) {
  const rows = [
    { title: "foldback", usage: report, ours: true },
    ...INDEX.policies.map((policy) => ({ ...policy, usage: report.baselines[policy.name] })),
  ];
  const head = FIGURES.map(([title]) => element("th", { scope: "col" }, title));
  const body = rows.map((row) => {
    const cells = FIGURES.map(([, key, label]) => {
      const most = Math.max(...rows.map((other) => other.usage[key]), 1);
      const value = row.usage[key];
      const beside = !row.ours && value > 0 && element("small", null, element("span", null, "foldback "), compared(report[key], value));
      const bar = element("i", null);
      bar.style.width = `${(value / most) * 100}%`;
      return element("td", { "data-label": label }, number(value), beside,
        element("span", { class: "meter", "aria-hidden": "true" }, bar));
    });
    return element("tr", { class: row.ours ? "ours" : null, title: row.about },
      element("th", { scope: "row" }, row.title), cells);
  });
  return element("table", { class: "sums" },
    element("thead", null, element("tr", null, element("td", null), head)),
    element("tbody", null, body));
}

function proofs(report) {
  const clean = report.lossless && report.orphans === 0;
  const fact = (title, value, more, kind) =>
    element("div", { class: kind }, element("dt", null, title), element("dd", null, value),
      more ? element("dd", null, more) : null);
  const reasons = Object.entries(report.close_reasons)
    .sort((a, b) => b[1] - a[1])
    .map(([reason, n]) => `${reason} ${number(n)}`);
  return element("dl", { class: "facts" },
    fact("Everything came back", report.lossless ? "byte for byte" : "NO",
      `${count(report.messages, "message")} and ${count(report.payloads, "payload")}, ${bytes(report.compared_bytes)} compared`,
      clean ? "proof" : "broken"),
    fact("Blocks", number(report.blocks), reasons.length ? `closed by ${reasons.join(", ")}` : "none closed"),
    fact("Payloads", number(report.payloads), report.payloads ? bytes(report.payload_bytes) : "nothing was large enough"),
    fact("In the window", count(report.window_max_messages, "message"), report.window_bound == null ? "of block and tail at most" : `of block and tail at most; the bound is ${number(report.window_bound)}`),
    fact("The prompt's beginning moved", count(report.prefix_moves, "time"), `in ${count(report.calls, "call")}, as blocks fold or leave`),
  );
}
