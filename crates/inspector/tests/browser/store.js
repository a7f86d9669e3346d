"use strict";
// A store in a folder of its own, filled by the command, and `foldback serve` on it.

const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");

const ROOT = path.resolve(__dirname, "../../../..");
const EXAMPLES = path.join(ROOT, "examples");
const TEXTS = path.join(ROOT, "crates/testkit/texts");

/** The command that is tested. */
function program() {
  const named = process.env.FOLDBACK;
  if (!named || !fs.existsSync(named)) {
    throw new Error(`FOLDBACK is ${JSON.stringify(named)}: expected the path of the command, such as target/debug/foldback`);
  }
  return path.resolve(named);
}

const texts = (name) => JSON.parse(fs.readFileSync(path.join(TEXTS, `${name}.json`), "utf8"));

/** The commands that run; none may outlive the tests. */
const running = new Set();
const stopAll = () => running.forEach((child) => child.kill("SIGKILL"));
process.on("exit", stopAll);

class Store {
  constructor() {
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), "foldback-browser-"));
    this.store = path.join(this.folder, "store");
    // No settings of the user.
    this.env = { PATH: process.env.PATH, HOME: this.folder, LANG: "C.UTF-8", TZ: "UTC" };
  }

  /** Runs the command, which has to succeed. Returns what it prints. */
  run(args, input) {
    const ran = spawnSync(program(), ["--quiet", "--store", this.store, ...args], {
      env: this.env, cwd: this.folder, input: input ?? "", encoding: "utf8", maxBuffer: 1 << 28,
    });
    if (ran.status !== 0) throw new Error(`foldback ${args.join(" ")} ended with ${ran.status}: ${ran.stderr}`);
    return ran.stdout;
  }

  /** Starts the command, and returns it with the JSON of its first line. */
  async start(args) {
    const child = spawn(program(), ["--quiet", "--json", "--store", this.store, ...args], {
      env: this.env, cwd: this.folder, stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(child);
    const ended = new Promise((done) => child.once("exit", () => { running.delete(child); done(); }));
    let told = "";
    child.stderr.on("data", (data) => { told += data; });
    const line = await new Promise((done, fail) => {
      readline.createInterface({ input: child.stdout }).once("line", done);
      ended.then(() => fail(new Error(`foldback ${args.join(" ")} ended: ${told}`)));
    });
    return { child, ended, first: JSON.parse(line) };
  }

  write(name, text) {
    const file = path.join(this.folder, name);
    fs.writeFileSync(file, text);
    return file;
  }

  import(...files) {
    return this.run(["--json", "import", ...files]).trim().split("\n").map((line) => JSON.parse(line));
  }

  example(name) {
    return this.import(path.join(EXAMPLES, `${name}.jsonl`));
  }

  /** Imports a conversation. */
  conversation(id, messages) {
    this.conversations = (this.conversations ?? 0) + 1;
    return this.import(this.write(`${this.conversations}.jsonl`, `${JSON.stringify({ id, messages })}\n`));
  }

  /** Records messages as an agent does. */
  record(todo, ...messages) {
    this.run(["record", "--todo", todo], messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
  }

  /** Serves the store on a port of this machine; 0 is any free one. */
  async serve(port = 0) {
    const { child, ended, first } = await this.start(["serve", "--listen", `127.0.0.1:${port}`]);
    const { listening, token } = first;
    return {
      address: listening,
      port: Number(new URL(listening).port),
      token,
      /** The answer of the API. */
      async api(place) {
        const answer = await fetch(`${listening}/api/v1/${place}`, { headers: { authorization: `Bearer ${token}` } });
        if (!answer.ok) throw new Error(`${place}: ${answer.status} ${await answer.text()}`);
        return answer.json();
      },
      async stop() {
        child.kill("SIGKILL");
        await ended;
      },
    };
  }

  remove() {
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

module.exports = { EXAMPLES, ROOT, Store, stopAll, texts };
