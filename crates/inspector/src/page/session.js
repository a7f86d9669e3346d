// The page of a session: what it cost, the runs in it, the report of its replay, a search in it, and its payloads.

/** Sections of this page besides those of the report, and their names. */
const OWN_SECTIONS = [["bill", "cost"], ["runs", "runs"], ["branches", "branches"], ["record", "messages"], ["find", "search"], ["stored", "payload lines"], ["replay", "replay"]];

/** How long a followed session has to rest before the page loads what is new. */
const FOLLOW_MS = 1500;

const sessionId = () => decodeURIComponent(location.pathname.split("/")[2] ?? "");

async function beginSession() {
  const id = sessionId();
  beginTheme();
  beginKeys();
  let session;
  try {
    session = await ask(sessionPath(id));
  } catch (error) {
    fill("facts", element("p", { class: "small" }, element("a", { href: "/" }, "‹ All sessions")), element("h1", { dir: "auto" }, id), problem(error));
    return;
  }
  drawFacts(session);
  const replayed = drawReplay(id, session);
  // A message is shown once there is a transcript to show it in, and beside it the first call that has it.
  const show = async (seq, which = "seen") => {
    await replayed;
    if (picture) {
      const call = which === "asked" ? picture.askedAt(seq) : picture.seenAt(seq);
      if (which !== "kept") chooseCall(call < 0 ? LAST : call);
      showMessage(seq);
    } else await readMessage?.(seq);
  };
  searchBox("find", {
    title: "Search this session",
    about: "As the model's own search does, with the score explained. Press / to come here.",
    run: (q) => ask(`${sessionPath(id)}/search`, { q, k: 10 }),
    show: {
      message: (hit, seq) => element("button", { type: "button", class: "link", onclick: () => show(seq) }, `#${seq}`),
      block: (hit) => element("button", { type: "button", class: "link mono", onclick: () => show(hit.first_seq) }, hit.block_id),
      payload: (hit, part) => element("button", { type: "button", class: "link mono", onclick: () => showPayload(id, part.ref, part.first_line, part.last_line) }, part.ref),
    },
  });
  const parts = { head: replayed, runs: drawRuns(id, show), branches: drawBranches(id, show), stored: drawPayloads(id) };
  if (session.savings) parts.bill = drawRequests(id, replayed);
  const drawn = Promise.all(Object.entries(parts).map(([place, part]) => part.catch((error) => fail(place, error))));
  watchSession(id, session.messages, drawn);
  await drawn;
  drawJumps();
  const asked = new URLSearchParams(location.search);
  const message = Number.parseInt(asked.get("message") ?? "", 10);
  const keepsCall = new URLSearchParams(location.hash.slice(1)).has("call") || asked.get("follow") === "1";
  if (message >= 0) await show(message, keepsCall ? "kept" : "seen");
  if (asked.get("payload")) await showAskedPayload(id, asked);
  document.body.dataset.drawn = "";
}

/** Says in a section why it could not be drawn. */
function fail(place, error) {
  fill(place, problem(error));
  document.getElementById(place).hidden = false;
}

/** Draws the replay; where there is none, the record. */
async function drawReplay(id, session) {
  fill("head", element("p", { class: "note", role: "status" }, "Replaying the session …"));
  let replay;
  try {
    replay = await ask(`${sessionPath(id)}/replay`);
  } catch (error) {
    replay = { undrawn: error.message };
  }
  if (replay.index) {
    INDEX = replay.index;
    pictureAt = () => replay.picture;
    begin();
    drawReplayNote(session);
    drawFailures(session);
    return;
  }
  fill("head", problem(replay.undrawn));
  drawFailures(session);
  await drawRecord(id, session);
}

/** Links to the sections that there are, in their order. */
function drawJumps() {
  const names = new Map([...SECTIONS, ...OWN_SECTIONS]);
  const sections = [...document.querySelectorAll("main > section")].filter((place) => names.has(place.id) && !place.hidden);
  const jumps = document.getElementById("jumps");
  jumps.replaceChildren(...sections.map((place) => element("a", { href: `#${place.id}` }, names.get(place.id))));
  jumps.hidden = false;
  const skip = document.querySelector(".skip");
  if (!picture) {
    skip.setAttribute("href", "#record");
    skip.textContent = "Skip to the messages";
  }
  // The report's own links, the skip link among them, have this already.
  for (const link of jumps.children) link.addEventListener("click", jump);
  if (!picture) skip.addEventListener("click", jump);
}

/** Offers to load what is new, or loads it where the page follows the session. */
function watchSession(id, messages, drawn) {
  const isFollowing = () => new URLSearchParams(location.search).get("follow") === "1";
  const reload = () => {
    // Without a chosen call the page shows the last one.
    if (isFollowing()) history.replaceState(null, "", location.pathname + location.search);
    location.reload();
  };
  const button = element("button", { type: "button", class: "plain fresh", onclick: reload });
  const follow = element("input", { type: "checkbox", checked: isFollowing(), onchange: () => {
    const query = new URLSearchParams(location.search);
    if (follow.checked) query.set("follow", "1");
    else query.delete("follow");
    history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
    if (follow.checked && button.isConnected) reload();
  } });
  const place = element("p", { class: "follow small" }, element("label", null, follow, " Follow this session: load what is new as it comes"));
  document.getElementById("facts").append(place);
  let due = null;
  const tell = (now) => {
    if (now === messages) return;
    button.textContent = now === 0 ? "This session is gone." : `${count(now - messages, "new message")}: load them`;
    if (!button.isConnected) place.before(button);
    clearTimeout(due);
    // A replay that takes longer than the pauses between messages is still shown once.
    if (isFollowing() && now > 0) drawn.then(() => { clearTimeout(due); due = setTimeout(reload, FOLLOW_MS); });
  };
  const look = () => ask(`${sessionPath(id)}/messages`, { from: 0, to: 0 }).then((list) => tell(list.total), () => {});
  watchChanges((changed) => changed.id === id && tell(changed.messages), look);
}

beginSession();
