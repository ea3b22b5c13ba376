"""A task while it goes on: a line for each run, in a terminal or in a notebook."""

from __future__ import annotations

import html
import importlib
import shutil
import sys
import threading
import time
from typing import Any, Dict, List, TextIO

EVENTS = ["run", "response", "llm_call", "end"]
OFTEN = 0.1  # seconds between two pictures
LINES = 12   # runs that are shown
TASK = 48    # characters of a task


def plain(text: str, most: int) -> str:
    """One line without control characters, cut."""
    line = "".join(each if each.isprintable() else " " for each in text[:2 * most])
    line = " ".join(line.split())
    return line if len(line) <= most else line[:most - 1] + "…"


class Picture:
    """The tree of runs, as its events tell it."""

    def __init__(self) -> None:
        self._runs: Dict[str, Dict[str, Any]] = {}
        self._began = time.monotonic()

    def hear(self, event: Dict[str, Any]) -> None:
        if event["event"] == "run":
            self._runs[event["run"]] = {"depth": event["depth"], "task": event["task"], "turn": 0,
                                        "calls": 0, "cost": 0.0, "ended": False, "error": None}
        run = self._runs.get(event["run"])
        if run is None:
            return
        if event["event"] == "response":
            run["turn"] += 1
            run["cost"] += event["response"].get("cost") or 0
        elif event["event"] == "llm_call":
            run["calls"] += 1
            run["cost"] += event.get("cost") or 0
        elif event["event"] == "end":
            run["ended"], run["error"] = True, event.get("error")

    def lines(self) -> List[str]:
        """The whole cost stands beside the root; runs that have ended give way to others."""
        runs = list(self._runs.values())
        hidden = max(0, len(runs) - LINES)
        ended = [run for run in runs[1:] if run["ended"]]
        gone = {id(run) for run in ended[:hidden]}
        cost = sum(run["cost"] for run in runs)
        shown = [run for run in runs if id(run) not in gone][:LINES]
        lines: List[str] = []
        for run in shown:
            mark = "✗" if run["error"] else "✓" if run["ended"] else "•"
            line = f"{'  ' * run['depth']}{mark} {plain(run['task'], TASK)}  turn {run['turn']}"
            if run["calls"]:
                line += f", {run['calls']} call{'s' * (run['calls'] > 1)}"
            if run is runs[0]:
                line += f", ${cost:.4f}, {time.monotonic() - self._began:.0f} s"
            lines.append(line)
        if len(runs) > len(shown):
            lines.append(f"  and {len(runs) - len(shown)} more runs")
        return lines


class Terminal:
    """Redraws the picture in its place (ECMA-48: CPL, ED)."""

    def __init__(self, stream: TextIO):
        self._stream, self._drawn = stream, 0

    def draw(self, lines: List[str]) -> None:
        width = max(20, shutil.get_terminal_size().columns - 1)
        above = f"\x1b[{self._drawn}F" if self._drawn else ""
        self._stream.write(above + "\x1b[J" + "".join(line[:width] + "\n" for line in lines))
        self._stream.flush()
        self._drawn = len(lines)


class Notebook:
    """One output of a cell, written over (IPython's display with an id)."""

    def __init__(self, display: Any):
        self._display = display
        self._shown: Any = None

    def draw(self, lines: List[str]) -> None:
        words = html.escape("\n".join(lines))
        picture = self._display.HTML(f"<pre>{words}</pre>")
        if self._shown is None:
            self._shown = self._display.display(picture, display_id=True)
        else:
            self._shown.update(picture)


def canvas() -> Any:
    """Where the picture is drawn: a notebook, or standard error; None: that is no terminal."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and "ZMQ" in type(shell).__name__:
        return Notebook(importlib.import_module("IPython.display"))
    return Terminal(sys.stderr) if sys.stderr and sys.stderr.isatty() else None


class Progress:
    """Hears the events of one job."""

    def __init__(self) -> None:
        self._picture, self._canvas = Picture(), canvas()
        self._lock, self._drawn = threading.Lock(), 0.0

    def hear(self, method: str, params: Dict[str, Any]) -> None:
        if self._canvas is None or method not in ("job.event", "job.end"):
            return
        with self._lock:
            if method == "job.event":
                self._picture.hear(params["event"])
            if method == "job.end" or time.monotonic() - self._drawn >= OFTEN:
                self._canvas.draw(self._picture.lines())
                self._drawn = time.monotonic()
