"use strict";
// A conversation of the examples, had again through `foldback gateway`: what it saves is really saved.

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { EXAMPLES } = require("./store.js");

/** A provider that gives the answers of the conversation, one after the other. It reports no tokens. */
function provider(answers) {
  const left = [...answers];
  return http.createServer((request, answer) => {
    request.resume().on("end", () => {
      const message = left.shift();
      const choice = { index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" };
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ id: "chatcmpl-1", object: "chat.completion", created: 0, model: "model", choices: [choice] }));
    });
  });
}

/** The tools that a conversation uses, as a client declares them. */
function toolsOf(messages) {
  const names = new Set(messages.flatMap((message) => (message.tool_calls ?? []).map((call) => call.function.name)));
  return [...names].map((name) => ({
    type: "function", function: { name, description: `Does ${name}.`, parameters: { type: "object", properties: {} } },
  }));
}

/** Sends an example through the gateway, request by request, as a client of the chat-completions API does. */
async function throughGateway(store, example, todo) {
  const whole = JSON.parse(fs.readFileSync(path.join(EXAMPLES, `${example}.jsonl`), "utf8").split("\n")[0]);
  const messages = whole.messages.map(({ timestamp, ...message }) => message);
  const server = provider(messages.filter((message) => message.role === "assistant"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const upstream = `http://127.0.0.1:${server.address().port}/v1`;
  const { child, ended, first } = await store.start(["gateway", "--listen", "127.0.0.1:0", "--openai-url", upstream]);
  try {
    const tools = toolsOf(messages);
    for (const [at, message] of messages.entries()) {
      if (message.role !== "assistant") continue;
      const answer = await fetch(`${first.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer none", "x-foldback-todo": todo },
        body: JSON.stringify({ model: "model", messages: messages.slice(0, at), tools }),
      });
      if (!answer.ok) throw new Error(`the gateway answered ${answer.status}: ${await answer.text()}`);
      await answer.arrayBuffer();
    }
  } finally {
    child.kill("SIGINT");
    await ended;
    server.close();
    server.closeAllConnections();
  }
}

module.exports = { throughGateway };
