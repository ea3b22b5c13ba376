// bench/peer_pyodide.mjs - runs blocks in Pyodide, as in_process.py does in a python3 without walls.
//
// Each line of standard input is one, its line feeds written as \n. Answers how many microseconds
// it took, its output caught. The first argument is the directory with node_modules/pyodide.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.argv[2] + "/");
const { loadPyodide } = require("pyodide");
const pyodide = await loadPyodide();
// As runtimes do that put each block's output into its result.
const before = `
import sys
from io import StringIO
__stdout__ = StringIO()
__stderr__ = StringIO()
sys.stdout = __stdout__
sys.stderr = __stderr__
`;
for await (const line of createInterface({ input: process.stdin })) {
  const code = line.replaceAll("\\n", "\n");
  const start = process.hrtime.bigint();
  await pyodide.runPythonAsync(before);
  await pyodide.runPythonAsync(code);
  await pyodide.runPythonAsync("__stdout__.getvalue()");
  await pyodide.runPythonAsync("__stderr__.getvalue()");
  console.log(Number(process.hrtime.bigint() - start) / 1e3);
}
