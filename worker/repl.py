"""One run's Python session, inside a sealed worker.

The template makes the Session, all of it that no run has a part in, and forks;
after the walls stand the worker calls its main(), which never returns. Nothing
is imported, opened or read from files after that. The messages of both sides stand in
src/wire/messages.def.

Code of a block runs in the namespace of `__main__`. It may do anything to
this process; what is put right before the next block is what it may do by
mistake: to our names and to sys.stdout.
"""

import builtins
import io
import os
import sys
import types

import awaiting
import block_text
import block_tree
import functions
import hints
import missing
import places
import tracebacks
import variables
import warming
from answers import Answer
from arguments import plain
from blocks import Compiler, Returned, end_block
from channel import Channel, end, exceeds
from final import is_answer, is_untouched, new_answer
from helpers import Helpers
from inputs import read_inputs
from interrupts import Interrupts
from messages import ANSWER_MAX
from output import NoInput, Output, clean, cut
from reserve import Reserve
from reserved import Reserved
from written_modules import WrittenModules
from zones import Zones


def install(library, stamps=None):
    """Called by the template before it loads what is foreign, with the stamps for an archive."""
    Zones(library).load(stamps)
    library.imported = places.imported
    places.install()


def prepare(library, preloaded):
    """Called by the template while there are files; gives the last finders of modules."""
    last = missing.Missing(preloaded, missing.installed())
    zones = Zones(library)
    zones.load()
    places.close(zones)
    return [WrittenModules(), last]


def warm_up():
    """Called by the template once, between forks."""
    warming.warm_up(Session)


VERSION = "{}.{}.{}".format(*sys.version_info)


class Session:
    """Made once for all workers: in each it meets what its run alone has, in _begin()."""

    def __init__(self, read_fd, write_fd):
        """The pipes of the worker that is to be; they need not be there yet."""
        self._interrupts = interrupts = Interrupts()
        interrupts.install()
        interrupts.spare(Session._guarded)
        self._channel = Channel(read_fd, write_fd, interrupts)
        self._reserve = Reserve()
        self._max_output = 0
        self._notes = []  # what the block is told at its end
        self._stdin = NoInput()
        self._stdout = Output("<stdout>", interrupts)
        self._stderr = Output("<stderr>", interrupts)

        # Kept: the last one to forget them would close them, in each worker.
        self._streams = sys.stdin, sys.stdout, sys.stderr
        sys.argv = [""]
        # The real module, so that what looks classes up by their module finds them.
        self._module = types.ModuleType("__main__")
        sys.modules["__main__"] = self._module
        sys.displayhook = self._echo
        self._namespace = self._module.__dict__
        self._helpers = Helpers(self._channel, self._namespace)
        self._reserved = Reserved(self._namespace, self._helpers.table)
        self._namespace["answer"] = new_answer()
        builtins.exit = builtins.quit = leave
        builtins.help = show_help
        self._awaited = awaiting.Awaited(self._helpers.table, interrupts)
        self._awaited.install(self._helpers.table)
        setattr(builtins, block_tree.RETURN, end_block)
        setattr(builtins, block_tree.SHOW, self._echo)
        self._compiler = Compiler(self._namespace, self._awaited.is_ours)
        tracebacks.install()

    def main(self, input_fds, layers, native):
        """Serves one run and ends the process; native as for read_inputs()."""
        self.start(input_fds, layers, native)
        try:
            while True:
                self.serve_one()
        except BaseException as error:
            end(1, "the worker cannot go on: " + tracebacks.plain(error))

    def start(self, input_fds, layers, native):
        """Gets ready for the run that the supervisor tells of."""
        self._channel.send("ready", {"python": VERSION, "layers": layers})
        start = self._channel.command()
        try:
            inputs = read_inputs(start, input_fds, native)
            self._begin(inputs, start["max_output"], start["task"],
                        functions.read(start["functions"]))
        except Exception as error:
            self._channel.send("started", {
                "error": clean(tracebacks.plain(error)),
                "no_memory": isinstance(error, MemoryError),
            })
            os._exit(1)
        self._channel.send("started", {"error": None, "no_memory": False})

    def _begin(self, inputs, max_output, task, foreign):
        """Sets up all that is this run's, and all that the template has until it forks."""
        self._max_output = max_output
        self._stdout.set_limit(max_output)
        self._stderr.set_limit(max_output)
        theirs = functions.make(self._channel, foreign) if foreign else {}
        tell = functions.make_output(self._channel, foreign) if foreign else None
        if tell:
            self._stdout.go_live(lambda text: tell("stdout", text))
            self._stderr.go_live(lambda text: tell("stderr", text))
        places.set_inputs(inputs)
        self._helpers.begin(inputs, task, theirs)
        self._reserved.add(inputs, theirs)
        if theirs:
            self._awaited.add(theirs)
        self._restore()

    def serve_one(self):
        """The next message, which may be the last."""
        message = self._channel.command()
        if message["type"] == "exec":
            self._exec(message["block"], message["code"])
        elif message["type"] == "get":
            self._get(message["name"])
        else:
            os._exit(0)

    def _restore(self):
        self._reserved.restore()
        sys.stdin = sys.__stdin__ = self._stdin
        sys.stdout = sys.__stdout__ = self._stdout
        sys.stderr = sys.__stderr__ = self._stderr

    # A block

    def _exec(self, number, source):
        self._restore()
        self._missing = None
        error = self._guarded(self._run, f"<block {number}>", source)
        if not self._is_settled():
            errors = error, self._guarded(self._settle)
            error = "\n".join(filter(None, errors))
        self._notes += self._reserved.undone()
        told = ""
        if self._notes:
            told = "".join([f"[note] {note}\n" for note in self._notes])
            self._notes.clear()
        told += self._helpers.notes.take() + places.take_notes()
        if told:
            self._stderr.write(told)
        final, answer = self._helpers.final.take()
        self._stdout.flush()
        self._stderr.flush()
        self._channel.send(
            "done",
            {
                "block": number,
                "stdout": self._stdout.take(),
                "stderr": self._stderr.take(),
                "error": clean(cut(error, self._max_output)) if error else None,
                "missing": self._missing,
                "final": final,
                "answer": answer,
            },
        )

    def _guarded(self, action, *given):
        """Calls action() as user code; returns the traceback where it fails."""
        error = escaped = None
        try:
            error = self._attempt(action, given)
        except BaseException as failure:  # a signal's, between the lines of _attempt()
            escaped = failure.with_traceback(None)
        self._interrupts.end()
        return tracebacks.plain(escaped) if escaped else error

    def _attempt(self, action, given):
        self._interrupts.begin()
        try:
            return action(*given)
        except BaseException as failure:
            if isinstance(failure, MemoryError):
                self._reserve.give()
            self._missing = missing.wanted(failure)
            places.explain(failure)
            return tracebacks.render(failure, hints.of(failure))

    def _run(self, filename, source):
        """Runs a block; returns the error where it could not be compiled."""
        block = self._compiler.prepare(source)
        tracebacks.remember(filename, block.text)
        error = self._compile(block, filename)
        self._notes += block.notes
        if error is not None:
            return error
        if self._reserve.held is None:
            self._reserve.keep()
        try:
            if block.awaits:
                awaiting.run(eval(block.codes[0], self._namespace), self._notes)
            else:
                for code in block.codes:
                    self._echo(eval(code, self._namespace))
        except SystemExit as leaving:
            self._note_exit(leaving.code)
        except Returned as returned:
            self._echo(returned.value)
            self._notes.append("`return` outside of a function ended this block")
        return None

    def _compile(self, block, filename):
        before, told = block.text, None
        try:
            self._compiler.compile(block, filename)
        except Exception as error:
            # Without memory Python 3.13 raises a SystemError here.
            if isinstance(error, (MemoryError, SystemError)) and self._reserve.give():
                return self._compile(block, filename)
            advice = None
            if isinstance(error, SyntaxError):
                advice = block_text.advice(block.text, error)
            told = tracebacks.render_syntax(error, advice)
        if block.text != before:
            tracebacks.remember(filename, block.text)
        return told

    def _echo(self, value):
        if value is None:
            return
        builtins._ = value
        limit = self._max_output
        if type(value) in (str, bytes, Answer) and len(value) > 4 * limit:
            # Only what will be shown: the whole repr may not fit into memory.
            self._stdout.write(repr(value[:limit])[:-1])
            self._stdout.skip(len(value) - 2 * limit)
            text = repr(value[len(value) - limit:]).lstrip("b")[1:]
        else:
            text = repr(value)
        self._stdout.write(text)
        self._stdout.write("\n")

    def _note_exit(self, code):
        if isinstance(code, str):
            self._stderr.write(code + "\n")
        shown = "" if code is None else variables.preview(code)
        self._stderr.write(
            f"[exit({shown}) ended this block only; the session and its variables go on]\n"
        )

    def _is_settled(self):
        """Whether nothing remains to be done, as after most blocks."""
        names = vars(sys)
        return (
            names.get("stdout") is self._stdout and names.get("stderr") is self._stderr
            and "asyncio" not in sys.modules and is_untouched(self._namespace.get("answer"))
        )

    def _settle(self):
        """Does the rest of a block's work, in which the user's objects have a say."""
        awaiting.end_loops()
        for name, ours in (("stdout", self._stdout), ("stderr", self._stderr)):
            current = getattr(sys, name, None)
            if current is not ours:
                setattr(sys, name, ours)
                recover(current, ours)
        if self._helpers.final.source is None:
            answer = self._namespace.get("answer")
            if is_answer(answer) and answer["ready"]:
                text = plain(str(answer.get("content", "")))
                self._helpers.final.give("final_direct", text)

    # Variables

    def _get(self, name):
        self._restore()
        found = []
        error = self._guarded(lambda: found.extend(self._tell(name)))
        if not found:
            found = f"<not to be shown: {cut(error, self._max_output)}>", ""
        value, listing = found
        expression = not name.isidentifier() and self._helpers.is_expression(name)
        self._channel.send(
            "value", {"value": value, "expression": expression, "variables": listing})

    def _tell(self, name):
        listing = variables.listing(self._namespace, self._helpers.user_names())
        value = None
        if self._helpers.has_variable(name):
            value = self._namespace[name]
            value = variables.whole(value.get("content", "") if is_answer(value) else value)
            if exceeds(value, ANSWER_MAX):
                listing = f"{name} is too large to be told: {len(value)} characters\n{listing}"
                value = None
        return value, clean(listing)


def recover(stream, ours):
    """Saves what a block printed into a stream that it put in place of ours and left there."""
    try:
        stream.flush()
        if isinstance(stream, io.StringIO):
            ours.write(stream.getvalue())
    except Exception:
        pass  # closed, None, or something of the user's


def leave(code=None):
    """Ends this block; the session goes on."""
    raise SystemExit(code)


def show_help(*topic):
    """help(object) prints its documentation."""
    import pydoc

    pydoc.help(*topic)
