// A second client of `rlmd serve --stdio`, written after docs/serve.md: node client.mjs PROGRAM...
//
// Ends with 0 where the server has answered as that page says, and with a word where it has not.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [program, ...words] = process.argv.slice(2);
const server = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => server.on("exit", (status) => resolve(status)));
const answers = new Map(), told = [], waiting = [];
const serves = {
  "tool.call": ({ name, arguments: given }) => {
    if (name === "fails") throw new Error("not today");
    return given.a + given.b;
  },
  "model.request": ({ kind, depth, messages }) => {
    assert.equal(typeof messages.at(-1).content, "string");
    const text = kind === "turn" && depth === 0
      ? "```python\nFINAL(f'{add(a=2, b=3)} and {llm_query(\"say it\")}')\n```" : "done";
    return { text, usage: { inputTokens: 10, outputTokens: 5, cost: 0.001 } };
  },
  "answer.check": ({ answer }) => ({ accept: answer === "5 and done" }),
};

function send(message) {
  server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

function serve({ id, method, params }) {
  try {
    send({ id, result: serves[method](params) });
  } catch (error) {
    send({ id, error: { code: 1, message: error.message } });
  }
}

createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  assert.equal(message.jsonrpc, "2.0");
  if (message.method && "id" in message) return serve(message);
  if (message.method) told.push(message);
  else answers.get(message.id)?.(message);
  for (const look of waiting) look();
});

let last = 0;
function ask(method, params = {}) {
  const id = `n${++last}`; // an id may be a text, too
  return new Promise((resolve, reject) => {
    answers.set(id, ({ result, error }) => {
      answers.delete(id);
      if (error) reject(Object.assign(new Error(error.message), error));
      else resolve(result);
    });
    send({ id, method, params });
  });
}

function notice(method, matches) {
  return new Promise((resolve) => {
    const look = () => {
      const found = told.find((each) => each.method === method && matches(each.params));
      if (found) resolve(found.params);
    };
    waiting.push(look);
    look();
  });
}

async function refused(code, kind, method, params) {
  const error = await ask(method, params).then(() => assert.fail(`${method} was taken`), (e) => e);
  assert.deepEqual([error.code, error.data.kind], [code, kind], `${method}: ${error.message}`);
}

await refused(-32002, "usage", "job.start", { task: "too early" });
const hello = await ask("initialize", { protocolVersion: "7", client: { name: "node", version: "0" } });
assert.deepEqual([hello.protocolVersion, hello.server.name], ["1", "rlmd"]);
assert.equal(hello.limits.line, 64 << 20);

const { job } = await ask("job.start", {
  task: "Add.", contexts: [{ name: "notes", text: "é🙂" }], model: "client", check: true, events: ["end"],
  options: { "max-cost": 0.5, "max-depth": 1 },
  tools: [{ name: "add", doc: "The sum.", schema: { properties: { a: { type: "integer" }, b: { type: "integer" } } } }],
});
const { result } = await notice("job.end", (params) => params.job === job);
assert.deepEqual([result.success, result.output], [true, "5 and done"], JSON.stringify(result.error));
assert.equal(result.usage.llmCalls, 2);
assert.equal((await notice("job.event", (params) => params.job === job)).event.event, "end");
assert.ok(told.some((each) => each.method === "job.delta"));
assert.equal((await ask("job.status", { job })).ended, true);

const { blob } = await ask("blob.begin");
for (const piece of ["one ", "two"]) await ask("blob.append", { blob, base64: Buffer.from(piece).toString("base64") });
await ask("blob.end", { blob });
const { session } = await ask("session.open", { contexts: [{ blob }], tools: [{ name: "fails", doc: "Fails." }] });
await ask("session.set", { session, name: "x", value: { a: [1, null, "é"] } });
assert.deepEqual(await ask("session.get", { session, name: "x" }), { found: true, value: { a: [1, null, "é"] } });
const done = await ask("session.execute", { session, code: "print(context.split())\nfails()" });
assert.deepEqual([done.stdout, done.error.type], ["['one', 'two']\n", "RuntimeError"]);
assert.match(done.error.message, /not today/);
assert.equal((await notice("session.output", (params) => params.stream === "stdout")).text, done.stdout);
await ask("session.close", { session });
await refused(-32602, "usage", "session.get", { session, name: "x" });

await refused(-32602, "usage", "job.start", { task: 7 });
await refused(-32601, "usage", "no.such", {});
const nothing = new Promise((resolve) => answers.set(null, resolve));
server.stdin.write("{broken\n");
assert.equal((await nothing).error.code, -32700);

assert.deepEqual(await ask("shutdown"), {});
assert.equal(await ended, 0);
