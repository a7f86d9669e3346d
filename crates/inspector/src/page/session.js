// The page of a session: the report of its replay, a search in it, and its payloads.

/** Sections of this page besides those of the report. */
const OWN_SECTIONS = [["find", "search"], ["stored", "payloads"]];

const sessionId = () => decodeURIComponent(location.pathname.split("/")[2] ?? "");

async function beginSession() {
  const id = sessionId();
  beginKeys();
  fill("facts", element("p", { class: "small" }, element("a", { href: "/" }, "‹ All sessions")),
    element("p", { class: "lead", role: "status" }, "Replaying the session …"));
  let page;
  try {
    page = await ask(sessionPath(id));
  } catch (error) {
    beginTheme();
    fill("facts", element("p", { class: "small" }, element("a", { href: "/" }, "‹ All sessions")), element("h1", { dir: "auto" }, id), problem(error));
    return;
  }
  drawFacts(page.session);
  document.getElementById("jumps").append(...OWN_SECTIONS.map(([place, title]) => element("a", { href: `#${place}` }, title)));
  if (page.index) {
    INDEX = page.index;
    pictureAt = () => page.picture;
    begin();
    drawReplayNote(page.session);
    for (const link of document.querySelectorAll("#jumps a")) {
      if (document.querySelector(link.getAttribute("href")).hidden) link.remove();
    }
  } else {
    beginTheme();
    for (const link of document.querySelectorAll(".skip, #jumps a")) link.addEventListener("click", jump);
    fill("head", element("h1", { dir: "auto" }, id), problem(page.undrawn));
  }
  document.getElementById("jumps").hidden = false;
  searchBox("find", {
    title: "Search this session",
    about: "As the model's own search does, with the score explained. Press / to come here.",
    run: (q) => ask(`${sessionPath(id)}/search`, { q, k: 10 }),
    show: {
      block: (hit) => picture
        ? element("button", { type: "button", class: "link mono", onclick: () => showMessage(hit.first_seq) }, hit.block_id)
        : element("span", { class: "mono" }, hit.block_id),
      payload: (hit, part) => element("button", { type: "button", class: "link mono", onclick: () => showPayload(id, part.ref, part.first_line, part.last_line) }, part.ref),
    },
  });
  const message = Number.parseInt(new URLSearchParams(location.search).get("message") ?? "", 10);
  if (picture && message >= 0) showMessage(message);
  await drawPayloads(id);
  watchSession(id, page.session.messages);
}

/** Offers to load what is new. The page stays as it is until then. */
function watchSession(id, messages) {
  const button = element("button", { type: "button", class: "plain fresh", onclick: () => location.reload() });
  const tell = (now) => {
    if (now === messages) return;
    button.textContent = now === 0 ? "This session is gone." : `${count(now - messages, "new message")}: load them`;
    if (!button.isConnected) document.getElementById("facts").append(button);
  };
  const look = () => ask(`${sessionPath(id)}/messages`, { from: 0, to: 0 }).then((list) => tell(list.total), () => {});
  watchChanges((changed) => changed.id === id && tell(changed.messages), look);
}

beginSession();
