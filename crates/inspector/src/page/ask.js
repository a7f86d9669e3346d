// Asking the API, and what both pages of the inspector have in common.

let INDEX = null;
let pictureAt = () => null;

const GONE = "The inspector does not answer. Is `foldback serve` still running?";

/** The answer of the API to a path below /api/v1, as data. Fails with a sentence. */
async function ask(path, parameters) {
  const given = Object.entries(parameters ?? {}).filter(([, value]) => value != null && value !== "");
  const query = new URLSearchParams(given).toString();
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}${query ? `?${query}` : ""}`);
  } catch {
    throw new Error(GONE);
  }
  if (answer.ok) return answer.json();
  const text = await answer.text();
  let message = text.trim();
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // A refusal is plain text.
  }
  throw new Error(message);
}

const sessionPath = (id) => `sessions/${encodeURIComponent(id)}`;

/** The address of a session's page, with what it shows. */
function sessionLink(id, shown) {
  const given = Object.entries(shown ?? {}).filter(([, value]) => value != null && value !== "");
  const query = new URLSearchParams(given).toString();
  return `/${sessionPath(id)}${query ? `?${query}` : ""}`;
}

const problem = (error) => element("p", { class: "problem", role: "alert", dir: "auto" }, error.message ?? String(error));

const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const EXACT = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
/** A time as an element, in the browser's own zone, which its tooltip names; null for none, also for the beginning of
 * 1970, which means that there was no clock. */
function when(time) {
  if (time == null || Date.parse(time) === 0) return null;
  const date = new Date(time);
  return element("time", { datetime: time, title: EXACT.format(date) }, DAY.format(date));
}

/** `62 % less`, `3 % more` of a saved part. */
const savedPart = (savings) => (savings.saved == null ? "" : compared(1 - savings.saved, 1));

/** What the gateway saved, in a sentence. */
function savingsTold(savings) {
  const told = [
    "Through the gateway: ",
    element("b", null, `${short(savings.sent.tokens)} tokens sent`),
    ` of ${short(savings.whole.tokens)} in ${count(savings.requests, "request")}, `,
  ];
  const { requests, tokens } = savings.recalls;
  if (requests) told.push(`and ${short(tokens)} in ${number(requests)} `, term("recall", requests === 1 ? "recall" : "recalls"), " by the model; ");
  told.push(element("b", null, savedPart(savings)),
    ` cost${requests ? " in all" : ""} (${short(savings.cost)} of ${short(savings.whole.cost)} `, term("weighted", "weighted tokens"), ")");
  told.push(savings.estimated === 0
    ? ", as the provider billed it."
    : savings.billed === 0 ? ", estimated: the provider reported no tokens." : `; of ${count(savings.estimated, "request")} the tokens are estimated.`);
  return told;
}

/** Fills a place anew. What had the focus in it has it again or, if that is gone, what can be scrolled there. */
function refill(id, ...children) {
  const place = document.getElementById(id);
  const nameOf = (node) => node.getAttribute("href") ?? node.getAttribute("aria-label") ?? node.textContent;
  const held = place.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  fill(id, ...children);
  if (held == null) return;
  const same = [...place.querySelectorAll("a, button, input")].find((node) => nameOf(node) === held && !node.disabled);
  (same ?? place.querySelector("[tabindex='0']") ?? place).focus({ preventScroll: true });
}

/** A button that copies a text, and says so. */
function copyButton(name, text) {
  const button = element("button", { type: "button", class: "plain" }, name);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  });
  return button;
}

/** `/` goes to the search. */
function beginKeys() {
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key !== "/" || typing || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    document.getElementById("find").scrollIntoView();
    document.querySelector("#find input").focus({ preventScroll: true });
  });
}

/** How long after a refusal changes are asked for again, in milliseconds. */
const AGAIN = 5_000;

/** Calls `changed` with each session that grows, and `missed` whenever a connection is made: no event reports
 * what came before it. A browser connects again by itself, but not after a refusal: a command that was started again has another token.
 * A browser has few connections to one host for all its tabs, so a page that is hidden holds none. */
function watchChanges(changed, missed) {
  const place = document.getElementById("live");
  const refused = problem(new Error("Changes are not followed any more. If `foldback serve` was started again, open the address that it printed; if many pages are open, close some."));
  const tell = (state, text) => {
    place.className = `live ${state}`;
    place.textContent = text;
  };
  let events = null;
  let again = null;
  const connect = () => {
    const own = new EventSource("/api/v1/events");
    events = own;
    own.addEventListener("open", () => {
      tell("on", "live");
      refused.remove();
      missed();
    });
    own.addEventListener("session", (event) => changed(JSON.parse(event.data)));
    own.addEventListener("error", () => {
      if (own.readyState !== EventSource.CLOSED) return tell("off", "connecting");
      tell("off", "stopped");
      if (!refused.isConnected) document.getElementById("main").prepend(refused);
      again = setTimeout(connect, AGAIN);
    });
  };
  const follow = () => {
    clearTimeout(again);
    events?.close();
    events = null;
    tell("off", document.hidden ? "paused" : "connecting");
    if (!document.hidden) connect();
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
