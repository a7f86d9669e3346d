"use strict";
// The stores that several tests read. Each is made when it is first needed, and removed with the process.

const { throughGateway } = require("./gateway.js");
const { Store } = require("./store.js");

function once(make) {
  let promise = null;
  return () => {
    promise ??= (async () => {
      const store = new Store();
      process.on("exit", () => store.remove());
      await make(store);
      return { store, server: await store.serve() };
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
});

/** A run of the agent with its sub-agents, and a session that is too long to be replayed. */
const agents = once(async (store) => {
  store.run(["run", "--demo", "--id", "tide"]);
  const message = (_, n) => ({ role: n % 2 ? "assistant" : "user", content: `Berth ${n} 泊位` });
  store.conversation("long", Array.from({ length: 10_001 }, message));
});

module.exports = { agents, examples, once };
