"use strict";
/*
 * Shows the events of a trace (docs/trace.md). All that a model, its code or an input has written
 * goes into the page as text of a node: none of it is markup, a link or a script.
 */
(() => {
const TEXT_SHOWN = 200000; // characters of a text, until more is asked for
const LABEL_SHOWN = 160;
const events = JSON.parse(document.getElementById("trace").textContent);
const $ = (id) => document.getElementById(id);

/* --- the tree of runs, turns and calls ---------------------------------------------------- */

const nodes = new Map(); // by id, in the order in which they began
const runs = new Map(); // a run's or plan's id: its node
const problems = [];
const whole = { start: 0, end: 1, result: null, head: events[0] || {} };

function addNode(id, kind, parent, label, start) {
  for (let base = id, number = 2; nodes.has(id); number++) id = `${base}.${number}`;
  const node = { id, kind, parent, label, start, end: start, texts: [], facts: [], children: [],
    notes: [], level: parent ? parent.level + 1 : 1, open: false, bars: [], cost: 0, input: 0,
    output: 0, known: true };
  nodes.set(id, node);
  if (parent) parent.children.push(node);
  return node;
}

const firstLine = (text) => {
  const line = String(text || "").trim().split("\n", 1)[0];
  return line.length > LABEL_SHOWN ? `${line.slice(0, LABEL_SHOWN)}…` : line;
};

/* Of an error its own last line: advice may stand behind it. */
const lastLine = (error) => String(error).trim().split("\n").filter((line) => !line.startsWith("Hint: ")).pop() || "";

const addText = (node, title, text, look = "") => {
  if (text) node.texts.push({ title, text: String(text), look });
};

const addProblem = (node, words, bad = true) => problems.push({ node, words: firstLine(words), bad });

/* Its run, also of an event whose run was not told. */
function runOf(event) {
  const known = runs.get(event.run);
  if (known) return known;
  const parent = runs.get(event.parent);
  const node = addNode(`run-${event.run}`, "run", parent ? parent.turn || parent : null, "run", event.ms);
  node.turns = 0;
  runs.set(event.run, node);
  return node;
}

function pay(node, cost, input, output) {
  for (let at = node; at; at = at.parent) {
    at.cost += cost || 0;
    at.known = at.known && cost !== null;
    at.input += input || 0;
    at.output += output || 0;
  }
}

function addCall(node, event) {
  const start = event.startedMs ?? event.ms - event.duration;
  const queued = event.queuedMs ?? start;
  node.start = queued;
  node.end = event.ms;
  if (start > queued) node.bars.push(["wait", queued, start]);
  node.bars.push(["model", start, event.ms]);
  node.facts.push(["model", event.provider ? `${event.provider}: ${event.model}` : event.model]);
  if (start > queued) node.facts.push(["waited", time(start - queued)]);
  if (event.cached) node.facts.push(["from", "the cache"]);
  if (event.journaled) node.facts.push(["from", "an earlier attempt at the job"]);
}

function addBlock(node, event) {
  if (event.duration) node.bars.push(["code", Math.max(node.start, event.ms - event.duration), event.ms]);
  node.end = Math.max(node.end, event.ms);
  addText(node, `Code, ${time(event.duration)}`, event.code, "code");
  addText(node, "Printed", event.stdout);
  addText(node, "Standard error", event.stderr, "bad");
  addText(node, "Error", event.error, "bad");
  if (event.error) {
    node.bad = true;
    addProblem(node, lastLine(event.error), false);
  }
}

const handlers = {
  run(event) {
    const node = runOf(event);
    node.label = firstLine(event.task) || "run";
    node.start = event.ms;
    node.facts.push(["run", event.run], ["model", event.model], ["depth", event.depth]);
    for (const input of event.contexts || [])
      node.facts.push([`input ${input.name}`, `${count(input.length)} characters, about ` +
        `${count(input.tokenEstimate)} tokens, ${input.contentType}`]);
    if (event.sandbox) node.facts.push(["walls", `${event.sandbox.level}, ${event.sandbox.mode}`]);
    addText(node, "Task", event.task);
  },
  demonstration(event) {
    const run = runOf(event);
    addBlock(addNode(`${event.run}.look`, "look", run, "a look at the inputs",
      event.ms - event.duration), event);
  },
  response(event) {
    const run = runOf(event);
    run.turns++;
    const code = event.response.content;
    const node = addNode(`${event.run}.turn${event.index + 1}`, "turn", run,
      `turn ${event.index + 1}: ${firstLine(code.replace(/^```\w*\n/, ""))}`, event.ms);
    run.turn = node;
    addCall(node, event);
    pay(node, event.response.cost, event.prompt.tokens, event.response.tokens);
    addText(node, event.index ? "Added to the prompt" : "Prompt", event.prompt.content);
    addText(node, "Thoughts", event.response.thinking);
    addText(node, "Response", event.response.content);
  },
  code(event) {
    const run = runOf(event);
    addBlock(run.turn || run, event);
  },
  iteration(event) {
    const turn = runOf(event).turn;
    if (turn) turn.end = Math.max(turn.end, event.ms);
  },
  llm_call(event) {
    const run = runOf(event);
    const failed = event.kind === "turn";
    const id = failed ? `${event.run}.failed` : `${event.run}.call${event.index + 1}`;
    const node = addNode(id, "call", event.kind === "llm_query" ? run.turn || run : run,
      `${event.kind}: ${firstLine(event.prompt)}`, event.ms);
    addCall(node, event);
    pay(node, event.cost, event.inputTokens, event.outputTokens);
    addText(node, "Prompt", event.prompt);
    addText(node, "Response", event.response);
    if (event.reason) node.facts.push(["in place of a sub-run", event.reason]);
    if (event.error) {
      addText(node, `Error: ${event.error.kind}`, event.error.message, "bad");
      if (event.error.httpStatus) node.facts.push(["HTTP status", event.error.httpStatus]);
      node.bad = event.error.kind !== "cancelled";
      if (node.bad) addProblem(node, `${event.kind}: ${event.error.message}`);
    }
  },
  waiting(event) {
    const run = runOf(event);
    (run.turn || run).notes.push(`${time(event.ms)}: ${event.model} is waited for, as ${event.reason}` +
      (event.httpStatus ? ` (HTTP ${event.httpStatus})` : ""));
  },
  degraded(event) {
    const run = runOf(event);
    (run.turn || run).notes.push(`${event.call}: ${event.reason}`);
    addProblem(run.turn || run, `${event.call} gave less than was asked for: ${event.reason}`, false);
  },
  function(event) {
    const run = runOf(event);
    const node = addNode(`${event.run}.function`, "function", run.turn || run,
      `${event.name}(${firstLine(event.arguments)})`, event.ms - event.duration);
    node.end = event.ms;
    node.bars.push(["code", node.start, node.end]);
    addText(node, "Arguments", event.arguments, "code");
    addText(node, event.error ? `Error: ${event.error}` : "Answer", event.answer, event.error ? "bad" : "");
    if (event.error) {
      node.bad = true;
      addProblem(node, `${event.name}: ${event.answer}`);
    }
  },
  plan_start(event) {
    const run = runOf(event);
    if (run.label === "run") run.label = "plan";
    (run.turn || run).notes.push(`${time(event.ms)}: a plan of ${count(event.operations)} operations ` +
      `(${event.strategy}), ${event.wanted} at once`);
  },
  operation_start(event) {
    const run = runOf(event);
    run.operations = run.operations || new Map();
    run.operations.set(event.id, event.ms);
  },
  operation_end(event) {
    const run = runOf(event);
    const start = run.operations?.get(event.id) ?? event.ms;
    const node = addNode(`${event.run}.operation-${event.id}`, "operation", run,
      `${event.id}: ${event.status}`, start);
    node.end = event.ms;
    node.bars.push(["run", start, event.ms]);
    node.facts.push(["tokens", count(event.tokens)]);
    if (event.error) {
      node.bad = event.status === "failed";
      addText(node, `Error: ${event.error.kind}`, event.error.message, "bad");
      if (node.bad) addProblem(node, `${event.id}: ${event.error.message}`);
    }
  },
  winner(event) { runOf(event).notes.push(`${time(event.ms)}: ${event.id} has won`); },
  parallelism(event) {
    runOf(event).notes.push(`${time(event.ms)}: ${event.parallel} at once in the place of ` +
      `${event.wanted}, for the budget`);
  },
  plan_end(event) {
    const run = runOf(event);
    run.notes.push(`${time(event.ms)}: ${event.succeeded} succeeded, ${event.failed} failed, ` +
      `${event.cancelled} were cancelled`);
    run.end = event.ms;
  },
  compaction(event) {
    runOf(event).notes.push(`${time(event.ms)}: the first ${event.turns} turns became a summary, ` +
      `${count(event.tokensBefore)} tokens became ${count(event.tokensAfter)}`);
  },
  warning(event) {
    const run = runOf(event);
    run.notes.push(event.text);
    addProblem(run, event.text, false);
  },
  end(event) {
    const run = runOf(event);
    run.ended = true;
    run.end = event.ms;
    run.facts.push(["ended", event.stopReason ? `${event.answerSource}, ${event.stopReason}` : event.answerSource]);
    addText(run, "Answer", event.finalAnswer);
    if (event.error) {
      addText(run, `Error: ${event.error.kind}`, event.error.message, "bad");
      run.bad = true;
      addProblem(run, event.error.message);
    }
  },
  result(event) { whole.result = event; },
};

function build() {
  for (const event of events) {
    whole.end = Math.max(whole.end, event.ms || 0);
    if (Object.hasOwn(handlers, event.event)) handlers[event.event](event);
  }
  for (const run of runs.values()) {
    if (run.kind === "run" && !run.ended) run.end = Math.max(run.end, ...run.children.map((child) => child.end));
    run.bars.push(["run", run.start, run.end]);
  }
  for (const node of [...nodes.values()].reverse())
    if (node.parent && node.bad && node.kind !== "run") node.parent.holdsBad = true;
  problems.sort((a, b) => b.bad - a.bad);
}

/* --- figures ------------------------------------------------------------------------------ */

function time(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round(ms / 1000) % 60} s`;
}

function count(number) {
  if (!(number >= 1000)) return String(number ?? "");
  return number < 1e6 ? `${(number / 1000).toFixed(1)} k` : `${(number / 1e6).toFixed(1)} M`;
}

const some = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function money(cost, known) {
  if (!known) return "?";
  return cost ? `$${cost.toFixed(cost < 0.01 ? 5 : 3)}` : "$0";
}

/* --- the page ----------------------------------------------------------------------------- */

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

const rows = new Map(); // id: the row in the page
let query = "", kind = "", selected = null, matching = null;

const roots = () => [...nodes.values()].filter((node) => !node.parent);

/* The words of a node in lower case, made when they are first searched. */
function words(node) {
  node.words ??= [node.label, ...node.texts.map((text) => text.text), ...node.notes,
    ...node.facts.map((fact) => fact.join(" "))].join("\n").toLowerCase();
  return node.words;
}

function fits(node) {
  if (kind === "problem" && !problems.some((problem) => problem.node === node)) return false;
  if (kind && kind !== "problem" && node.kind !== kind) return false;
  return !query || words(node).includes(query);
}

/* Of a search all that fits is shown, and what it stands in. */
function search() {
  matching = null;
  if (query || kind) {
    const found = [...nodes.values()].filter(fits);
    matching = new Set(found);
    for (const node of found) for (let at = node.parent; at; at = at.parent) matching.add(at);
    $("count").textContent = `${found.length} of ${nodes.size}`;
  } else $("count").textContent = "";
  draw();
}

function shown() {
  const list = [];
  const walk = (node) => {
    if (matching && !matching.has(node)) return;
    list.push(node);
    if (matching || node.open) node.children.forEach(walk);
  };
  roots().forEach(walk);
  return list;
}

function bar(node) {
  const made = element("span", { class: "bar", "aria-hidden": "true" });
  for (const [look, start, end] of node.bars) {
    const part = element("i", { class: look });
    part.style.left = `${(100 * start) / whole.end}%`;
    part.style.width = `${(100 * Math.max(0, end - start)) / whole.end}%`;
    made.append(part);
  }
  return made;
}

function makeRow(node) {
  const row = element("div", { class: "row", id: node.id, role: "treeitem", "aria-level": node.level,
    tabindex: "-1" });
  const name = element("span", { class: "name" });
  name.style.paddingLeft = `${(node.level - 1) * 1.1}em`;
  name.append(element("span", { class: "twist" }), node.label);
  name.title = node.label;
  row.append(name, element("span", { class: "num" }, time(node.end - node.start)),
    element("span", { class: "num" }, node.input || node.output ? money(node.cost, node.known) : ""),
    element("span", { class: "num tokens" }, node.input || node.output ? count(node.input + node.output) : ""),
    bar(node));
  if (node.bad || node.holdsBad) row.classList.add("bad");
  rows.set(node.id, row);
  return row;
}

function draw() {
  const list = shown();
  $("tree").replaceChildren(...list.map((node) => {
    const row = rows.get(node.id) || makeRow(node);
    const open = Boolean(matching || node.open);
    row.querySelector(".twist").textContent = node.children.length ? (open ? "▾" : "▸") : "";
    if (node.children.length) row.setAttribute("aria-expanded", open);
    row.setAttribute("aria-selected", node === selected);
    row.tabIndex = node === selected ? 0 : -1;
    return row;
  }));
}

/* A text with the words that are searched marked. */
function marked(text) {
  const made = document.createDocumentFragment();
  const low = text.toLowerCase();
  let at = 0;
  if (query && low.length === text.length)
    for (let next; (next = low.indexOf(query, at)) >= 0; at = next + query.length)
      made.append(text.slice(at, next), element("mark", {}, text.slice(next, next + query.length)));
  made.append(text.slice(at));
  return made;
}

function block({ title, text, look }) {
  const box = element("pre", { class: look, tabindex: "0" }, marked(text.slice(0, TEXT_SHOWN)));
  const parts = [element("h3", {}, title), box];
  if (text.length > TEXT_SHOWN) {
    const more = element("button", { type: "button" }, `Show all ${count(text.length)} characters`);
    more.onclick = () => { box.replaceChildren(marked(text)); more.remove(); };
    parts.push(more);
  }
  return parts;
}

const link = (node, label) => element("a", { href: `#${encodeURIComponent(node.id)}` }, label);

function detail(node) {
  const facts = [["time", `${time(node.start)} to ${time(node.end)} (${time(node.end - node.start)})`]];
  if (node.input || node.output)
    facts.push(["tokens", `${count(node.input)} in, ${count(node.output)} out`], ["cost", money(node.cost, node.known)]);
  const back = element("button", { id: "back", type: "button" }, "Back");
  back.onclick = () => document.body.classList.remove("shown");
  const parts = [back, element("h2", {}, marked(node.label)),
    element("dl", {}, ...[...facts, ...node.facts].flatMap(([name, value]) =>
      [element("dt", {}, String(name)), element("dd", {}, String(value))]))];
  if (node.notes.length)
    parts.push(element("h3", {}, "Notes"), element("ul", {}, ...node.notes.map((note) => element("li", {}, marked(note)))));
  parts.push(...node.texts.flatMap(block));
  if (node.children.length)
    parts.push(element("h3", {}, "In it"), element("ul", {}, ...node.children.slice(0, 500).map((child) =>
      element("li", {}, link(child, child.label)))));
  $("detail").replaceChildren(...parts);
  $("detail").scrollTop = 0;
}

function select(node, focus = true) {
  selected = node;
  for (let at = node.parent; at; at = at.parent) at.open = true;
  if (matching && !matching.has(node)) {
    query = kind = $("search").value = $("filter").value = "";
    search();
  } else draw();
  detail(node);
  const row = rows.get(node.id);
  row.scrollIntoView({ block: "nearest" });
  if (focus) row.focus({ preventScroll: true });
  const hash = `#${encodeURIComponent(node.id)}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
}

function fromHash() {
  let id = "";
  try {
    id = decodeURIComponent(location.hash.slice(1));
  } catch { /* a hash of somebody else's */ }
  const node = nodes.get(id);
  if (node) {
    select(node);
    document.body.classList.add("shown");
  }
  return node;
}

function head() {
  const root = roots()[0];
  const result = whole.result;
  const facts = [];
  $("title").textContent = root ? root.label : "An empty trace";
  document.title = root ? `${root.label} - rlmd` : "A trace of rlmd";
  if (result) facts.push(result.success ? "answered" : "failed");
  else facts.push("without an end: it goes on, or was killed");
  if (root) {
    const calls = [...nodes.values()].filter((node) => node.kind === "call" || node.kind === "turn");
    facts.push(time(whole.end), money(root.cost, root.known), `${count(root.input)} tokens in, ${count(root.output)} out`,
      some(calls.length, "call of a model", "calls of models"), some(runs.size - 1, "sub-run", "sub-runs"));
  }
  if (whole.head.startedAt) facts.push(`began ${whole.head.startedAt}`);
  if (whole.head.program) facts.push(whole.head.program);
  $("facts").textContent = facts.join(" · ");
  $("problems").hidden = !problems.length;
  $("problems").querySelector("ul").replaceChildren(...problems.slice(0, 500).map((problem) => {
    const made = link(problem.node, problem.words);
    if (problem.bad) made.className = "bad text";
    return element("li", {}, made);
  }));
}

/* --- keys, clicks, light and dark ---------------------------------------------------------- */

function move(step) {
  const list = shown();
  const at = list.indexOf(selected);
  const next = list[Math.min(list.length - 1, Math.max(0, at + step))];
  if (next) select(next);
}

function toggle(node, open = !node.open) {
  if (node.children.length) node.open = open;
  draw();
  rows.get(node.id)?.focus({ preventScroll: true });
}

function nextProblem() {
  if (!problems.length) return;
  const at = problems.findIndex((problem) => problem.node === selected);
  select(problems[(at + 1) % problems.length].node);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
}

const switchTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

const keys = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  ArrowRight: () => selected && (selected.open ? move(1) : toggle(selected, true)),
  ArrowLeft: () => selected && (selected.open || !selected.parent ? toggle(selected, false) : select(selected.parent)),
  Enter: () => document.body.classList.add("shown"),
  Escape: () => document.body.classList.remove("shown"),
  "/": () => $("search").focus(),
  e: nextProblem,
  t: switchTheme,
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select");
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
  if (event.key.startsWith("Arrow") && !event.target.closest("#tree, body:not(:focus-within)") &&
    event.target !== document.body) return;
  if (event.key === "Enter" && !event.target.closest("#tree")) return;
  if (!Object.hasOwn(keys, event.key)) return;
  if (typing) event.target.blur();
  event.preventDefault();
  keys[event.key]();
});
$("tree").addEventListener("click", (event) => {
  const node = nodes.get(event.target.closest(".row")?.id);
  if (!node) return;
  if (event.target.closest(".twist") || node === selected) toggle(node);
  select(node);
  if (!event.target.closest(".twist")) document.body.classList.add("shown");
});
let pause = 0;
$("search").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    query = $("search").value.toLowerCase();
    search();
    if (selected) detail(selected);
  }, 80);
});
$("filter").addEventListener("change", () => { kind = $("filter").value; search(); });
$("open").addEventListener("click", () => {
  const open = [...nodes.values()].some((node) => node.children.length && !node.open);
  for (const node of nodes.values()) node.open = open;
  $("open").textContent = open ? "Close all" : "Open all";
  draw();
});
$("theme").addEventListener("click", switchTheme);
$("help").addEventListener("click", () => {
  $("keys").hidden = !$("keys").hidden;
  $("help").setAttribute("aria-expanded", !$("keys").hidden);
});
addEventListener("hashchange", fromHash);

build();
for (const root of roots()) root.open = true;
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
head();
draw();
if (!fromHash() && roots()[0]) select(roots()[0], false);
})();
