// The runs of an agent: the plan of each turn as a graph and as steps, its sub-agents, and the todo list.

const STEP_STATES = { done: "done", failed: "✗ failed", skipped: "– not run", open: "… no result" };
const ITEM_MARKS = { pending: "☐", in_progress: "▶", completed: "☑", failed: "✗", cancelled: "–" };

/** The measures of a graph, in points. */
const GRAPH = { width: 168, height: 34, right: 44, below: 12 };

/** A larger graph is left out: the steps say the same. */
const GRAPH_STEPS = 200;

async function drawRuns(id, show) {
  const list = await ask(`${sessionPath(id)}/runs`);
  const placed = list.runs.filter((run) => run.task_seq != null);
  toolsAt = (call) => {
    const run = placed.findLast(({ task_seq: from }) => from < call.at);
    return ownTools(run?.tools, "that the agent declared", "Which tools the agent declared is not recorded.");
  };
  if (picture) chooseCall(chosen.call, true);
  if (list.runs.length === 0 && list.todo_list.length === 0) return;
  document.getElementById("runs").hidden = false;
  const last = list.runs.length - 1;
  fill("runs",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "runs-title" }, list.total ? `${count(list.total, "run")} of the agent` : "Todo list"),
      list.runs.length
        ? element("p", { class: "note" }, "What was planned and run. A step opens to its arguments and its result; a sub-agent's conversation is a session of its own.",
          list.total > list.runs.length ? ` The last ${number(list.runs.length)} are shown.` : "")
        : null)),
    todoList(list.todo_list),
    list.runs.map((run, at) => oneRun(run, at === last, show)));
}

function todoList(items) {
  if (items.length === 0) return null;
  const titles = new Map(items.map((item) => [item.id, item.title]));
  const waits = (item) => item.depends_on.map((id) => `“${titles.get(id) ?? id}”`).join(" and ");
  const name = (item) => (item.has_session ? element("a", { href: sessionLink(item.id), dir: "auto" }, item.title) : element("span", { dir: "auto" }, item.title));
  return element("div", { class: "items" },
    element("h3", null, "Todo list"),
    element("ul", null, items.map((item) => element("li", null,
      element("span", { class: item.state === "failed" ? "mark bad" : "mark", "aria-hidden": "true" }, ITEM_MARKS[item.state] ?? "?"), " ", name(item),
      element("small", null, ` ${item.state.replace("_", " ")}`, item.depends_on.length ? `, after ${waits(item)}` : ""),
      item.result ? element("p", { class: "small", dir: "auto" }, item.result) : null))));
}

function oneRun(run, isOpen, show) {
  const spent = run.spent;
  const failed = run.turns.flatMap((turn) => turn.steps).filter((step) => step.state === "failed").length;
  const facts = [
    run.state, failed ? element("b", { class: "bad" }, `✗ ${count(failed, "step")} failed`) : null, run.strategy, run.context, run.model,
    count(spent.calls, "model call"), `${short(spent.input_tokens)} tokens in, ${short(spent.output_tokens)} out`,
    spent.cost == null ? null : `${spent.cost.toFixed(4)} at the configured prices`,
    run.total_us == null ? null : duration(run.total_us), when(run.began),
  ].filter(Boolean);
  return element("details", { class: "run", open: isOpen },
    element("summary", null, element("b", { class: "mono" }, run.id), " ", element("span", { dir: "auto" }, peek(run.task, 160)),
      element("span", { class: "small" }, facts.flatMap((fact, at) => (at ? [" · ", fact] : [fact])))),
    run.task.length > 160 ? element("p", { class: "whole", dir: "auto" }, run.task) : null,
    run.chosen ? element("p", { class: "note", dir: "auto" }, `Began with ${run.chosen.strategy}: ${run.chosen.because}.`) : null,
    run.degraded ? element("p", { class: "note", dir: "auto" }, `Continued step by step: ${run.degraded}`) : null,
    run.unrecorded ? element("p", { class: "note" }, `No steps: ${run.unrecorded}.`) : null,
    run.turns.map((turn) => oneTurn(turn, show)),
    run.why ? element("p", { class: "problem", dir: "auto" }, run.why) : null,
    run.answer ? element("div", { class: "outcome" }, element("h3", null, "The answer"), element("p", { class: "whole", dir: "auto" }, run.answer)) : null);
}

function oneTurn(turn, show) {
  // Where no step waits for another, the list says all that a graph would.
  const isGraph = turn.steps.length <= GRAPH_STEPS && turn.steps.some((step) => step.after.length);
  const graph = isGraph ? graphOf(turn) : null;
  return element("section", { class: "turn", "aria-label": `Turn ${turn.turn + 1}` },
    element("p", { class: "part" }, element("b", null, `Turn ${turn.turn + 1}`), element("span", null, `${purposes(turn)} · ${count(turn.steps.length, "step")}`)),
    turn.findings.map((finding) => element("p", { class: "note", dir: "auto" }, `Refused: ${finding}`)),
    graph ? element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `The plan of turn ${turn.turn + 1} as a graph` }, graph) : null,
    element("ol", { class: "steps" }, turn.steps.map((step) => oneStep(step, show))));
}

/** The purposes of a turn's requests, in words. */
function purposes(turn) {
  const words = { planner: "planned", repair: "plan repaired", replan: "planned again", react: "step by step", flow: "flow" };
  return [...new Set(turn.purposes)].map((name) => words[name] ?? name.replace("_", " ")).join(", ");
}

function oneStep(step, show) {
  const took = step.start_us == null ? null : duration(step.end_us - step.start_us);
  const state = element("span", { class: step.state === "failed" ? "bad" : null }, STEP_STATES[step.state]);
  const facts = [state, exitOf(step), step.after.length ? `after ${step.after.join(", ")}` : null, took].filter(Boolean);
  return element("li", { class: step.state },
    placeOf(step, show),
    element("details", null,
      element("summary", null, element("b", null, `${step.step}. ${step.tool ?? "new plan"}`), " ",
        element("span", { dir: "auto" }, peek(plainArguments(step), 90)), element("small", null, facts.map((fact, at) => [at ? " · " : " ", fact]))),
      element("pre", { tabindex: 0, dir: "auto" }, step.arguments),
      step.result == null ? null : element("pre", { tabindex: 0, dir: "auto", class: step.state === "failed" ? "error" : null }, step.result)),
    step.sub_agents.map((agent) => element("div", { class: "agent" },
      element("p", null, "↘ sub-agent ", agent.session ? element("a", { class: "mono", href: sessionLink(agent.session) }, agent.session) : "without a session of its own",
        element("small", null, ` ${agent.ended} · ${count(agent.model_calls, "model call")} · ${count(agent.tool_calls, "tool call")}`)),
      element("p", { class: "small", dir: "auto" }, peek(agent.task, 240)),
      agent.answer ? element("p", { class: "small", dir: "auto" }, `↖ ${peek(agent.answer, 400)}`) : null)));
}

/** Links to the messages of a step's call and its result, each beside what the model saw there. */
function placeOf(step, show) {
  const link = (seq, which, name, about) => (seq == null ? null : element("button", {
    type: "button", class: "link", onclick: () => show(seq, which), title: about, "aria-label": `${name} #${seq} of step ${step.step}, ${step.tool}`,
  }, `${name} #${seq}`));
  const links = [
    link(step.call_seq, "asked", "call", "the call in the transcript, and beside it what the model had seen when it made it"),
    link(step.result_seq, "seen", "result", "the result in the transcript, and beside it what the model saw next"),
  ].filter(Boolean);
  return links.length ? element("p", { class: "places" }, links.map((one, at) => [at ? " · " : "", one])) : null;
}

/** The exit code of a command that ran and did not succeed. */
function exitOf(step) {
  const code = step.state === "failed" && /\[exit code (-?\d+)\]\s*$/.exec(step.result ?? "")?.[1];
  return code ? `exit code ${code}` : null;
}

/** The short values of a call's arguments. */
function plainArguments(step) {
  try {
    const values = Object.values(JSON.parse(step.arguments));
    return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" ");
  } catch {
    return step.arguments;
  }
}

function peek(text, most) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, cutAt(line, most)).trimEnd()} …` : line;
}

function duration(us) {
  if (us < 1e3) return `${us} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 1 : 0)} ms`;
  return us < 1e8 ? `${(us / 1e6).toFixed(1)} s` : `${Math.round(us / 6e7)} min`;
}

/** The steps of a turn as a graph: each stands one column behind the last step that it waits for. */
function graphOf(turn) {
  const column = new Map();
  const known = new Set(turn.steps.map((step) => step.step));
  for (const step of turn.steps) {
    const before = step.after.filter((id) => known.has(id) && column.has(id)).map((id) => column.get(id));
    column.set(step.step, before.length ? Math.max(...before) + 1 : 0);
  }
  const filled = [];
  const place = new Map();
  for (const step of turn.steps) {
    const at = column.get(step.step);
    filled[at] = (filled[at] ?? 0) + 1;
    place.set(step.step, { x: 2 + at * (GRAPH.width + GRAPH.right), y: 2 + (filled[at] - 1) * (GRAPH.height + GRAPH.below) });
  }
  const width = 4 + filled.length * GRAPH.width + (filled.length - 1) * GRAPH.right;
  const height = 4 + Math.max(...filled) * (GRAPH.height + GRAPH.below) - GRAPH.below;
  const edges = turn.steps.flatMap((step) => step.after.filter((id) => place.has(id)).map((id) => {
    const from = place.get(id);
    const to = place.get(step.step);
    const [x, y, x2, y2] = [from.x + GRAPH.width, from.y + GRAPH.height / 2, to.x, to.y + GRAPH.height / 2];
    const half = Math.max((x2 - x) / 2, 12);
    return shape("path", { class: "edge", d: `M${x} ${y}C${x + half} ${y} ${x2 - half} ${y2} ${x2} ${y2}` });
  }));
  const boxes = turn.steps.map((step) => {
    const { x, y } = place.get(step.step);
    return shape("g", { class: `box ${step.state}` },
      shape("rect", { x, y, width: GRAPH.width, height: GRAPH.height, rx: 7 }),
      shape("text", { x: x + 10, y: y + 21 }, `${step.state === "failed" ? "✗ " : ""}${step.step}  ${peek(step.tool ?? "new plan", step.state === "failed" ? 14 : 17)}`),
      shape("title", null, `${step.step}. ${step.tool ?? "new plan"}: ${STEP_STATES[step.state]}`));
  });
  const label = turn.steps.map((step) => `step ${step.step} ${step.tool ?? "new plan"}, ${STEP_STATES[step.state]}${step.after.length ? `, after ${step.after.join(" and ")}` : ""}`).join("; ");
  return shape("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, edges, boxes);
}
