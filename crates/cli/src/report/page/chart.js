// The tokens of each call: foldback, and the other policies beside it.

const SIDES = { left: 46, right: 14, top: 12, bottom: 30 };

let resized = new ResizeObserver(() => {});

function drawCurve() {
  const calls = picture.calls;
  const title = element("div", { class: "title" },
    element("div", null,
      element("h2", { id: "curve-title" }, "What each call is sent"),
      element("p", { class: "note" }, "Tokens of each prompt, the recall tools included. Choose a call here, or with the slider below.")),
    keyOf());
  const chart = element("div", { class: "chart" });
  const table = element("details", { class: "figures" },
    element("summary", null, "The figures as a table"));
  table.addEventListener("toggle", () => {
    if (table.open && table.children.length === 1) table.append(figures());
  });
  fill("curve", title, chart, table);
  if (calls.length === 0) {
    chart.append(element("p", { class: "note" }, "No call was made."));
    return;
  }
  let plot = null;
  const draw = () => {
    const width = chart.clientWidth - 20;
    if (width > 0) plot = plotted(chart, width);
    if (plot) plot.mark(chosen.call);
  };
  draw();
  resized.disconnect();
  resized = new ResizeObserver(draw);
  resized.observe(chart);
  onCall((_, at) => plot && plot.mark(at));
}

/** Each rival's line has its own style; with more than four of them, styles repeat. */
const rival = (at) => `c-rival c-${at % 4}`;

function keyOf() {
  const sample = (kind) => shape("svg", { width: 26, height: 10, "aria-hidden": "true" },
    shape("path", { d: "M1 5H25", class: kind }));
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

function plotted(chart, width) {
  const calls = picture.calls;
  const height = width < 520 ? 230 : 320;
  const most = Math.max(1, ...calls.map((call) => Math.max(call.k, ...call.o)));
  const steps = ticks(most, height < 300 ? 3 : 5);
  const top = Math.max(most, steps.at(-1));
  const inner = width - SIDES.left - SIDES.right;
  const x = (at) => SIDES.left + (calls.length === 1 ? inner / 2 : (at / (calls.length - 1)) * inner);
  const y = (k) => height - SIDES.bottom - (k / top) * (height - SIDES.top - SIDES.bottom);
  const line = (value) => calls.map((call, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(value(call)).toFixed(1)}`).join("");
  const ours = line((call) => call.k);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": spoken(calls) });
  for (const step of steps) {
    svg.append(shape("path", { class: "grid", d: `M${SIDES.left} ${y(step)}H${width - SIDES.right}` }),
      shape("text", { x: SIDES.left - 8, y: y(step) + 4, "text-anchor": "end" }, short(step)));
  }
  for (const at of marks(calls.length, inner)) {
    svg.append(shape("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, at === 0 ? "call 1" : number(at + 1)));
  }
  picture.folds.forEach((blocks, at) => {
    if (blocks.length) svg.append(shape("path", { class: "c-fold", d: `M${x(at)} ${y(0) + 2}v8` }));
  });
  INDEX.policies.forEach((_, other) => svg.append(shape("path", { class: rival(other), d: line((call) => call.o[other]) })));
  svg.append(
    shape("path", { class: "c-area", d: `${ours}L${x(calls.length - 1)} ${y(0)}L${x(0)} ${y(0)}Z` }),
    shape("path", { class: "c-ours", d: ours }));
  INDEX.policies.forEach((policy, other) => {
    for (const cut of picture.forgot[policy.name] ?? []) {
      const at = cut.call - 1;
      svg.append(shape("circle", { class: "c-forgot", cx: x(at), cy: y(calls[at].o[other]), r: 4.2 },
        shape("title", null, `${policy.title}: ${number(cut.gone)} messages are gone from here on`)));
    }
  });
  const hover = shape("path", { class: "c-hover", d: "" });
  const now = shape("path", { class: "c-now", d: "" });
  const dot = shape("circle", { class: "c-dot", r: 4.5, stroke: "currentColor" });
  dot.style.stroke = "var(--accent)";
  svg.append(hover, now, dot);
  const tip = element("div", { class: "tip", hidden: true });
  chart.replaceChildren(svg, tip);

  const upright = (at) => `M${x(at)} ${SIDES.top}V${y(0)}`;
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const at = calls.length === 1 ? 0 : Math.round(((place - SIDES.left) / inner) * (calls.length - 1));
    return Math.max(0, Math.min(calls.length - 1, at));
  };
  const show = (event) => {
    const at = nearest(event);
    hover.setAttribute("d", upright(at));
    tip.replaceChildren(...told(at));
    tip.hidden = false;
    // Beside the line, on the side that has room; the chart's own padding is a rem.
    const onLeft = x(at) > width / 2;
    tip.style.right = onLeft ? `calc(${width - x(at) + 14}px + 1rem)` : "auto";
    tip.style.left = onLeft ? "auto" : `calc(${x(at) + 14}px + 1rem)`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", (event) => {
    show(event);
    chooseCall(nearest(event));
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    hover.setAttribute("d", "");
  });
  return {
    mark(at) {
      now.setAttribute("d", upright(at));
      dot.setAttribute("cx", x(at));
      dot.setAttribute("cy", y(calls[at].k));
    },
  };
}

/** The text of a call's tip. */
function told(at) {
  const call = picture.calls[at];
  const rows = [element("dt", { class: "ours" }, "foldback"), element("dd", { class: "ours" }, number(call.k))];
  INDEX.policies.forEach((policy, other) => {
    rows.push(element("dt", null, policy.title), element("dd", null, number(call.o[other])));
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

function figures() {
  const head = ["call", "messages", "foldback", ...INDEX.policies.map((policy) => policy.title)];
  const rows = picture.calls.map((call, at) =>
    element("tr", null, [at + 1, call.at, call.k, ...call.o].map((n) => element("td", null, number(n)))));
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Tokens of each call" },
    element("table", null,
      element("thead", null, element("tr", null, head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", null, rows)));
}

function spoken(calls) {
  const most = (value) => number(Math.max(...calls.map(value)));
  const others = INDEX.policies.map((policy, at) => `${policy.title} at most ${most((call) => call.o[at])}`);
  return `Tokens of ${count(calls.length, "call")}: foldback at most ${most((call) => call.k)}, ${others.join(", ")}.`;
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
