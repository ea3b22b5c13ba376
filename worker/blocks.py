"""A block's text made into code, once; what it takes to be run as it was meant is done to it."""

import __future__
import ast
import builtins

import block_text
import block_tree
import usual_names

FEATURES = [getattr(__future__, name) for name in __future__.all_feature_names]
COROUTINE = 0x80  # inspect.CO_COROUTINE
REPAIRS_MAX = 50  # each parses the block again


def is_coroutine(code):
    """Whether running it gives a coroutine: it awaits."""
    return bool(code.co_flags & COROUTINE)


class Returned(BaseException):
    """A `return` outside of any function."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value


def end_block(value):
    """__return__(): what such a `return` raises."""
    return Returned(value)


class Block:
    """Its code: all statements, and the last one where it is an expression."""

    def __init__(self, text):
        self.text = text   # as it is run; its lines are those that were written
        self.notes = []
        self.body = self.last = None

    @property
    def awaits(self):
        return is_coroutine(self.body) or self.last is not None and is_coroutine(self.last)


class Compiler:
    def __init__(self, namespace, is_ours):
        """is_ours(value): whether it is one of our functions."""
        self._namespace = namespace
        self._is_ours = is_ours
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # and what blocks imported from __future__

    def prepare(self, source):
        """The Block for a text; it has no code yet."""
        text = block_text.dedent(source)
        return Block(block_text.without_tag(text, self._exists))

    def compile(self, block, filename):
        """Gives a Block its code; raises what ast.parse() and compile() raise."""
        dialogue, tree = self._parse(block, filename)
        if "await" in block.text or "asyncio" in block.text:
            block_tree.mark_awaited(tree, lambda name: self._is_ours(self._look_up(name)))
        try:
            self._make_code(block, tree, filename, dialogue)
        except SyntaxError as error:
            if "'return' outside function" not in str(error.msg):
                raise
            tree = self._parse(block, filename)[1]
            block_tree.end_at_returns(tree)
            self._make_code(block, tree, filename, dialogue)
        self._import_usual(block, tree)

    def _parse(self, block, filename):
        """Whether it was a dialogue, and its tree; what is no Python is mended first."""
        dialogue = False
        for _attempt in range(REPAIRS_MAX):
            try:
                return dialogue, ast.parse(block.text, filename)
            except SyntaxError as error:
                found = None if dialogue else block_text.without_prompts(block.text)
                if found:
                    dialogue = True
                    block.text, outputs = found
                    if outputs:
                        block.notes.append(
                            f"{outputs} line{'s' if outputs > 1 else ''} without a prompt (>>>) "
                            "were taken for output and not run"
                        )
                elif not self._repair(block, error):
                    raise
        return dialogue, ast.parse(block.text, filename)

    def _repair(self, block, error):
        text = block_text.without_fences(block.text)
        if text is None:
            found = block_text.without_command(block.text, error.lineno or 0)
            if found is None:
                return False
            text, note = found
            if note and len(block.notes) < block_text.NOTES_MAX:
                block.notes.append(note)
        block.text = text
        return True

    def _make_code(self, block, tree, filename, dialogue):
        last = None
        if dialogue:
            # Each expression is shown, as where it was copied from.
            body = compile(ast.Interactive(tree.body), filename, "single", self._flags,
                           dont_inherit=True)
        else:
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = tree.body.pop()
            body = compile(tree, filename, "exec", self._flags, dont_inherit=True)
        for feature in FEATURES:
            self._flags |= body.co_flags & feature.compiler_flag
        if last is not None:
            tree.body.append(last)
            last = compile(ast.Expression(last.value), filename, "eval", self._flags,
                           dont_inherit=True)
        block.body, block.last = body, last

    def _import_usual(self, block, tree):
        names = usual_names.names_in(block.body)
        if block.last is not None:
            usual_names.names_in(block.last, names)
        missing = [
            name for name in names
            if not self._exists(name) and usual_names.is_read(name, block.text)
        ]
        if not missing:
            return
        lines = []
        for name, attributes in block_tree.unbound(tree, sorted(missing, key=str.lower)).items():
            found = usual_names.find(name, attributes)
            if found:
                self._namespace[name], line = found
                lines.append(line)
        if lines:
            block.notes.append(f"imported for you: {'; '.join(lines)}")

    def _exists(self, name):
        return name in self._namespace or hasattr(builtins, name)

    def _look_up(self, name):
        return self._namespace.get(name, getattr(builtins, name, None))
