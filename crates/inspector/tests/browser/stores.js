"use strict";
// The stores that several tests read. Each is made when it is first needed, and removed with the process.

const fs = require("node:fs");
const { throughGateway } = require("./gateway.js");
const { Store } = require("./store.js");

const made = [];

function once(make) {
  let promise = null;
  return () => {
    promise ??= (async () => {
      const store = new Store();
      process.on("exit", () => store.remove());
      const served = { store, ...(await make(store)) };
      served.server ??= await store.serve();
      made.push(served);
      return served;
    })();
    return promise;
  };
}

/** The three conversations of the examples, and one of them through the gateway. */
const examples = once(async (store) => {
  store.example("customer-service");
  store.example("coding-session");
  store.example("bilingual-research");
  await throughGateway(store, "coding-session", "through-the-gateway");
  return {};
});

/** A run of the agent with its sub-agents, and a session that is too long to be replayed. */
const agents = once(async (store) => {
  store.run(["run", "--demo", "--id", "tide"]);
  const message = (_, n) => ({ role: n % 2 ? "assistant" : "user", content: `Berth ${n} 泊位` });
  store.conversation("long", Array.from({ length: 10_001 }, message));
  return {};
});

async function stopServers() {
  await Promise.all(made.map(({ server }) => server.stop()));
}

module.exports = { agents, examples, once, stopServers };
