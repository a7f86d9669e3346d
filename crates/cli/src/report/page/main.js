// Puts the page together: the index, the sections, the address, the keys, the theme.

const SECTIONS = [["curve", "tokens"], ["blocks", "blocks"], ["views", "transcript and view"], ["outside", "payloads"], ["searches", "searches"]];

/** The call that a conversation opens at: the last one, at which the view leaves out most. */
const LAST = Number.MAX_SAFE_INTEGER;

function drawIndex() {
  const entries = INDEX.entries;
  const place = document.getElementById("index");
  place.hidden = entries.length < 2;
  if (place.hidden) return;
  const undrawn = entries.filter((entry) => entry.picture == null).length;
  const head = ["conversation", "messages", "calls", "foldback", "keeping everything", "", "lossless"];
  const lines = entries.map((entry, at) => {
    const { id, messages, calls, input_tokens, baselines, lossless } = entry.report;
    const full = baselines.full.input_tokens;
    const name = element("button", { type: "button", class: "link", dir: "auto", onclick: () => choose(at, LAST) }, id);
    return element("tr", { "data-entry": at },
      element("td", null, name, entry.picture == null ? element("small", { class: "tag" }, "figures only") : null),
      [number(messages), number(calls), short(input_tokens), short(full), compared(input_tokens, full), lossless ? "yes" : "NO"].map((text) => element("td", null, text)));
  });
  fill("index",
    element("div", { class: "title" }, element("div", null,
      element("h2", { id: "index-title" }, count(entries.length, "conversation")),
      undrawn ? element("p", { class: "note" }, `At most ${INDEX.pictures_most} are drawn in one page, the first that fit. For ${number(undrawn)} there are only figures.`) : null)),
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Conversations" }, element("table", null,
      element("thead", null, element("tr", null, head.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", null, lines))));
}

function choose(entry, call, quiet) {
  choosePicture(entry);
  for (const line of document.querySelectorAll("#index tr[data-entry]")) {
    const isChosen = Number(line.dataset.entry) === entry;
    line.setAttribute("aria-current", String(isChosen));
    const list = line.closest(".scroll");
    const isSeen = line.offsetTop >= list.scrollTop && line.offsetTop < list.scrollTop + list.clientHeight - 40;
    if (isChosen && !isSeen) list.scrollTop = line.offsetTop - list.clientHeight / 2;
  }
  drawHead();
  for (const [id] of SECTIONS) document.getElementById(id).hidden = picture == null;
  document.getElementById("jumps").hidden = picture == null;
  if (picture == null) {
    if (!quiet) remember();
    return;
  }
  drawCurve();
  drawBlocks();
  drawViews();
  drawOutside();
  drawSearches();
  chooseCall(call, quiet);
  drawFoot();
}

function drawFoot() {
  const cut = picture.messages.some((message) => message.t.includes("characters are left out of this page"));
  fill("foot",
    element("p", null, `foldback ${INDEX.version}. In a replay, tokens are o200k's; a cached token is read at 0.1 of the plain price and written at 1.25 of it. `,
      INDEX.policies.map((policy) => `${policy.title}: ${policy.about} `)),
    picture.messages.some((message) => message.at == null)
      ? element("p", null, "Messages without a time of their own are taken as of 1970-01-01 here, so that the same input gives the same page.")
      : null,
    cut ? element("p", null, `Texts over ${number(picture.text_chars)} characters have lost their middle in this page; the store has them whole.`) : null);
}

const theme = {
  now: () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"),
  set(name) {
    document.documentElement.dataset.theme = name;
    theme.tell();
  },
  /** Sets it for later pages, too. */
  keep(name) {
    theme.set(name);
    try {
      localStorage.setItem("foldback-theme", name);
    } catch {
      // A page that may keep nothing shows it until it is left.
    }
  },
  kept() {
    try {
      return localStorage.getItem("foldback-theme");
    } catch {
      return null;
    }
  },
  tell() {
    const other = theme.now() === "dark" ? "light" : "dark";
    const button = document.getElementById("theme");
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  },
};

/** The parameters in the address: `#conversation=2&call=12&theme=dark`. */
function asks() {
  const address = new URLSearchParams(location.hash.slice(1));
  const whole = (name) => Number.parseInt(address.get(name) ?? "", 10);
  const among = (n, length) => (n >= 1 && n <= length ? n - 1 : 0);
  return {
    entry: among(whole("conversation"), INDEX.entries.length),
    call: Number.isNaN(whole("call")) ? null : whole("call") - 1,
  };
}

/** Goes to a section. The address keeps the current choice. */
function jump(event) {
  event.preventDefault();
  const place = document.querySelector(event.currentTarget.getAttribute("href"));
  place.scrollIntoView();
  place.focus({ preventScroll: true });
}

/** The theme button, and the theme of the address, or else the one that was chosen last. */
function beginTheme() {
  const asked = asksTheme() ?? theme.kept();
  if (["light", "dark"].includes(asked)) theme.set(asked);
  theme.tell();
  document.getElementById("theme").addEventListener("click", () => theme.keep(theme.now() === "dark" ? "light" : "dark"));
}

const asksTheme = () =>
  new URLSearchParams(location.search).get("theme") ?? new URLSearchParams(location.hash.slice(1)).get("theme");

function begin() {
  const asked = asks();
  document.getElementById("jumps").append(...SECTIONS.map(([id, title]) => element("a", { href: `#${id}` }, title)));
  for (const link of document.querySelectorAll(".skip, #jumps a")) link.addEventListener("click", jump);
  if (INDEX.entries.length === 0) {
    fill("head", element("p", { class: "lead" }, "There is no conversation in this page."));
    return;
  }
  drawIndex();
  choose(asked.entry, asked.call ?? LAST, true);
  addEventListener("hashchange", () => {
    const now = asks();
    if (now.call == null) return;
    if (now.entry !== chosen.entry) choose(now.entry, now.call, true);
    else chooseCall(now.call, true);
  });
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, [contenteditable]");
    // What is wider than its place is scrolled by these keys.
    const wide = event.target.closest(".scroll");
    if ((wide && wide.scrollWidth > wide.clientWidth) || typing || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    chooseCall(chosen.call + by);
  });
}
