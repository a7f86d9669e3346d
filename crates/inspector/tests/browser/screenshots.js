"use strict";
// The pictures of docs/inspector.md: the list of sessions, and a session, in both colour schemes.
//
//   FOLDBACK=target/debug/foldback node screenshots.js

const fs = require("node:fs");
const path = require("node:path");
const { closeBrowser, listShown, sessionShown, visit } = require("./browser.js");
const { throughGateway } = require("./gateway.js");
const { ROOT, Store } = require("./store.js");

/** A larger picture does not belong in a repository. */
const BYTES_MOST = 200_000;

const PICTURES = [
  { name: "inspector", place: "/", shown: listShown, height: 810 },
  { name: "inspector-session", place: "/sessions/double-delivery#call=22", shown: sessionShown, height: 1060 },
];

async function main() {
  const store = new Store();
  process.on("exit", () => store.remove());
  store.example("customer-service");
  store.example("bilingual-research");
  await throughGateway(store, "coding-session", "double-delivery");
  const server = await store.serve();
  for (const { name, place, shown, height } of PICTURES) {
    for (const scheme of ["light", "dark"]) {
      const { page, close } = await visit(server, place, { dark: scheme === "dark", width: 1280, height });
      await shown(page);
      const file = path.join(ROOT, `docs/${name}-${scheme}.png`);
      await page.screenshot({ path: file });
      await close();
      const { size } = fs.statSync(file);
      if (size > BYTES_MOST) throw new Error(`${file} has ${size} bytes, over ${BYTES_MOST}`);
      console.log(file);
    }
  }
  await closeBrowser();
  await server.stop();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
