// Curves over calls: foldback, and the other policies beside it.

const SIDES = { left: 46, right: 14, top: 12, bottom: 30 };

/** What the curve shows of a call: foldback's value, and that of the policy at an index. */
const MEASURES = [
  {
    button: "Tokens of each call",
    title: "What each call is sent",
    note: () => "Tokens of each prompt, the recall tools included. Choose a call here, or with the slider of the transcript.",
    noun: "Tokens",
    ours: (call) => call.k,
    other: (call, at) => call.o[at],
  },
  {
    button: "Cost so far",
    title: "What the calls cost so far",
    note: () => ["The input of all calls up to here, in ", term("weighted", "weighted tokens"), ". A steep stretch is where most of the cost arises."],
    noun: "Cost",
    ours: (call) => call.c,
    other: (call, at) => call.oc[at],
  },
];

let measure = MEASURES[0];
/** Marks a call in the curve that is drawn. */
let markCall = () => {};

/** Each rival's line has its own style; with more than four of them, styles repeat. */
const rival = (at) => `c-rival c-${at % 4}`;

function drawCurve() {
  onCall((_, at) => markCall(at));
  paintCurve();
}

function paintCurve() {
  const calls = picture.calls;
  const choice = element("div", { class: "choice", role: "group", "aria-label": "What the curve shows" },
    MEASURES.map((one) => element("button", {
      type: "button", class: "plain", "aria-pressed": String(one === measure),
      onclick: () => {
        measure = one;
        paintCurve();
        markCall(chosen.call);
        document.querySelector('#curve .choice [aria-pressed="true"]').focus();
      },
    }, one.button)));
  const title = element("div", { class: "title" },
    element("div", null,
      element("h2", { id: "curve-title" }, measure.title),
      element("p", { class: "note" }, measure.note())),
    choice, keyOf());
  fill("curve", title);
  if (calls.length === 0) {
    document.getElementById("curve").append(element("div", { class: "chart" }, element("p", { class: "note" }, "No call was made.")));
    markCall = () => {};
    return;
  }
  const lines = [
    { title: "foldback", kind: "c-ours", values: calls.map(measure.ours) },
    ...INDEX.policies.map((policy, at) => ({ title: policy.title, kind: rival(at), values: calls.map((call) => measure.other(call, at)) })),
  ];
  const curve = curveOf({
    noun: "call", what: measure.noun, lines,
    folds: picture.folds.flatMap((blocks, at) => (blocks.length ? [at] : [])),
    cuts: INDEX.policies.flatMap((policy, other) => (picture.forgot[policy.name] ?? []).map((cut) => ({
      at: cut.call - 1, line: other + 1, told: `${policy.title}: ${number(cut.gone)} messages are gone from here on`,
    }))),
    tip: told,
    choose: (at) => chooseCall(at),
    columns: [["messages", (at) => calls[at].at]],
  });
  document.getElementById("curve").append(curve.chart, curve.table);
  markCall = curve.mark;
}

function keyOf() {
  const fold = shape("svg", { width: 8, height: 10, "aria-hidden": "true" },
    shape("path", { d: "M4 1V9", class: "c-fold" }));
  const cut = shape("svg", { width: 10, height: 10, "aria-hidden": "true" },
    shape("circle", { cx: 5, cy: 5, r: 3.4, class: "c-forgot" }));
  const forgets = Object.values(picture.forgot).some((cuts) => cuts.length > 0);
  return element("p", { class: "key" },
    element("span", null, sample("c-ours"), "foldback"),
    INDEX.policies.map((policy, at) => element("span", null, sample(rival(at)), policy.title)),
    element("span", null, fold, "a block folds"),
    forgets ? element("span", null, cut, "messages lost for good") : null);
}

const sample = (kind) => shape("svg", { width: 26, height: 10, "aria-hidden": "true" },
  shape("path", { d: "M1 5H25", class: kind }));

/** The text of a call's tip. */
function told(at) {
  const call = picture.calls[at];
  const rows = [element("dt", { class: "ours" }, "foldback"), element("dd", { class: "ours" }, number(measure.ours(call)))];
  INDEX.policies.forEach((policy, other) => {
    rows.push(element("dt", null, policy.title), element("dd", null, number(measure.other(call, other))));
  });
  const folds = picture.folds[at].map((block) => block.n);
  const gone = INDEX.policies.flatMap((policy) =>
    (picture.forgot[policy.name] ?? []).filter((cut) => cut.call === at + 1).map((cut) => [policy, cut]));
  return [
    element("b", null, `call ${number(at + 1)}`),
    ` after ${count(call.at, "message")}`,
    element("dl", null, rows),
    folds.length ? element("p", null, `${folds.length > 1 ? "Blocks" : "Block"} ${folds.join(", ")} folded before it.`) : null,
    gone.map(([policy, cut]) => element("p", null, `${policy.title}: ${number(cut.gone)} messages are gone by now.`)),
  ].flat().filter(Boolean);
}

/** A chart of lines over calls or requests, and its figures as a table. `data` has the noun of what is counted, what is
 * measured, the lines (the first is foldback's), the nodes of a tip, and optionally how many were before the first, folds, cuts,
 * a choice and further columns. */
function curveOf(data) {
  const chart = element("div", { class: "chart" });
  const table = element("details", { class: "figures" },
    element("summary", null, "The figures as a table"));
  table.addEventListener("toggle", () => {
    if (table.open && table.children.length === 1) table.append(figures(data));
  });
  let plot = null;
  let marked = null;
  const mark = (at) => {
    marked = at;
    if (plot) plot.mark(at);
  };
  const draw = () => {
    const width = chart.clientWidth - 20;
    if (width > 0) plot = plotted(chart, width, data);
    if (plot && marked != null) plot.mark(marked);
  };
  new ResizeObserver(draw).observe(chart);
  return { chart, table, mark };
}

function plotted(chart, width, data) {
  const { lines, choose } = data;
  const total = lines[0].values.length;
  const height = width < 520 ? 230 : 320;
  const most = lines.reduce((high, line) => line.values.reduce((a, b) => Math.max(a, b), high), 1);
  const steps = ticks(most, height < 300 ? 3 : 5);
  const top = Math.max(most, steps.at(-1));
  const inner = width - SIDES.left - SIDES.right;
  const x = (at) => SIDES.left + (total === 1 ? inner / 2 : (at / (total - 1)) * inner);
  const y = (k) => height - SIDES.bottom - (k / top) * (height - SIDES.top - SIDES.bottom);
  const path = (values) => values.map((value, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const ours = path(lines[0].values);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": spoken(data) });
  for (const step of steps) {
    svg.append(shape("path", { class: "grid", d: `M${SIDES.left} ${y(step)}H${width - SIDES.right}` }),
      shape("text", { x: SIDES.left - 8, y: y(step) + 4, "text-anchor": "end" }, short(step)));
  }
  for (const at of marks(total, inner)) {
    svg.append(shape("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, at === 0 ? `${data.noun} ${number((data.before ?? 0) + 1)}` : number((data.before ?? 0) + at + 1)));
  }
  for (const at of data.folds ?? []) svg.append(shape("path", { class: "c-fold", d: `M${x(at)} ${y(0) + 2}v8` }));
  for (const line of lines.slice(1)) svg.append(shape("path", { class: line.kind, d: path(line.values) }));
  svg.append(
    shape("path", { class: "c-area", d: `${ours}L${x(total - 1)} ${y(0)}L${x(0)} ${y(0)}Z` }),
    shape("path", { class: lines[0].kind, d: ours }));
  for (const cut of data.cuts ?? []) {
    svg.append(shape("circle", { class: "c-forgot", cx: x(cut.at), cy: y(lines[cut.line].values[cut.at]), r: 4.2 },
      shape("title", null, cut.told)));
  }
  const hover = shape("path", { class: "c-hover", d: "" });
  const now = shape("path", { class: "c-now", d: "" });
  const dot = shape("circle", { class: "c-dot", r: 4.5, stroke: "currentColor", visibility: "hidden" });
  dot.style.stroke = "var(--accent)";
  svg.append(hover, now, dot);
  const tip = element("div", { class: "tip", hidden: true });
  chart.replaceChildren(svg, tip);

  const upright = (at) => `M${x(at)} ${SIDES.top}V${y(0)}`;
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const at = total === 1 ? 0 : Math.round(((place - SIDES.left) / inner) * (total - 1));
    return Math.max(0, Math.min(total - 1, at));
  };
  const show = (event) => {
    const at = nearest(event);
    hover.setAttribute("d", upright(at));
    tip.replaceChildren(...data.tip(at));
    tip.hidden = false;
    // Beside the line, on the side that has room; the chart's own padding is a rem.
    const onLeft = x(at) > width / 2;
    tip.style.right = onLeft ? `calc(${width - x(at) + 14}px + 1rem)` : "auto";
    tip.style.left = onLeft ? "auto" : `calc(${x(at) + 14}px + 1rem)`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", (event) => {
    show(event);
    if (choose) choose(nearest(event));
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    hover.setAttribute("d", "");
  });
  return {
    mark(at) {
      now.setAttribute("d", upright(at));
      dot.setAttribute("visibility", "visible");
      dot.setAttribute("cx", x(at));
      dot.setAttribute("cy", y(lines[0].values[at]));
    },
  };
}

function figures(data) {
  const columns = data.columns ?? [];
  const head = [data.noun, ...columns.map(([name]) => name), ...data.lines.map((line) => line.title)];
  const rows = data.lines[0].values.map((_, at) => element("tr", null,
    [(data.before ?? 0) + at + 1, ...columns.map(([, value]) => value(at)), ...data.lines.map((line) => line.values[at])]
      .map((n) => element("td", null, typeof n === "number" ? number(n) : n))));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${data.what} of each ${data.noun}` },
    element("table", null,
      element("thead", null, element("tr", null, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", null, rows)));
}

function spoken(data) {
  const most = (line) => number(line.values.reduce((a, b) => Math.max(a, b), 0));
  const each = data.lines.map((line) => `${line.title} at most ${most(line)}`);
  return `${data.what} of ${count(data.lines[0].values.length, data.noun)}: ${each.join(", ")}.`;
}

/** Round numbers from 0 to the first that is not below `most`. */
function ticks(most, about) {
  const rough = most / about;
  const scale = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * scale).find((n) => n >= rough) ?? scale;
  const found = [];
  for (let at = 0; at < most + step; at += step) found.push(at);
  return found;
}

/** The calls whose numbers are shown under the axis. */
function marks(calls, width) {
  const room = Math.max(2, Math.floor(width / 90));
  const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000].find((n) => calls / n <= room) ?? 2500;
  const found = [0];
  for (let call = step; call <= calls; call += step) if (call > 1 && call - 1 > step * 0.6) found.push(call - 1);
  return found;
}
