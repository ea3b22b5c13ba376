"""A block's text made into code, once; what it takes to be run as it was meant is done to it."""

import __future__
import ast
import builtins

import block_text
import block_tree
import usual_names

COROUTINE = 0x80  # inspect.CO_COROUTINE
REPAIRS_MAX = 50  # each parses the block again
TREE_WORDS = "await", "async", "__future__"  # what is changed in a tree, or changes its compilation

FEATURES = 0  # what a block can import from __future__
for feature in __future__.all_feature_names:
    FEATURES |= getattr(__future__, feature).compiler_flag


class Returned(BaseException):
    """A `return` outside of any function."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value


def end_block(value):
    """__return__(): what such a `return` raises."""
    return Returned(value)


class Block:
    def __init__(self, text):
        self.text = text   # as it is run; its lines are those that were written
        self.notes = []
        self.codes = []    # to be run one after the other; the value of each is shown

    @property
    def awaits(self):
        """Whether running it gives a coroutine; there is but one code then."""
        return bool(self.codes[0].co_flags & COROUTINE)


class Compiler:
    def __init__(self, namespace, is_ours):
        """is_ours(value): whether it is one of our functions."""
        self._namespace = namespace
        self._is_ours = is_ours
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # and what blocks imported from __future__

    def prepare(self, source):
        """The Block for a text; it has no code yet."""
        text = block_text.dedent(source)
        block = Block(block_text.without_tag(text, self._exists))
        text = block_text.without_entities(block.text)
        if text is not None:
            block.text = text
            block.notes.append("`&gt;` and the like were read as the signs that they stand for")
        return block

    def compile(self, block, filename):
        """Gives a Block its code; raises what ast.parse() and compile() raise."""
        if not self._compile_text(block, filename):
            self._compile_tree(block, filename)

    def _compile_text(self, block, filename):
        """Without a tree, which takes as long again; false where it takes one."""
        for word in TREE_WORDS:
            if word in block.text:
                return False
        parts = block_text.parts_of(block.text)
        if parts is None:
            return False
        before, last, is_value = parts
        codes = []
        try:
            lines = "\n" * before.count("\n")
            mode = "eval" if is_value else "exec"
            codes.append(compile(lines + last, filename, mode, self._flags, dont_inherit=True))
            if before:
                codes.insert(0, compile(before, filename, "exec", self._flags, dont_inherit=True))
        except Exception:
            return False
        block.codes = codes
        self._import_usual(block, filename)
        return True

    def _compile_tree(self, block, filename):
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
        self._import_usual(block, filename)

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
        text, note = block_text.without_fences(block.text), None
        if text is None:
            found = (block_text.with_plain_signs(block.text)
                     or block_text.without_command(block.text, error.lineno or 0))
            if found is None:
                return False
            text, note = found
        if note and len(block.notes) < block_text.NOTES_MAX:
            block.notes.append(note)
        block.text = text
        return True

    def _make_code(self, block, tree, filename, dialogue):
        if dialogue:
            # Each expression is shown, as where it was copied from.
            tree, mode = ast.Interactive(tree.body), "single"
        else:
            mode = "exec"
            block_tree.show_last(tree)
        code = compile(tree, filename, mode, self._flags, dont_inherit=True)
        self._flags |= code.co_flags & FEATURES
        block.codes = [code]

    def _import_usual(self, block, filename):
        names = set()
        for code in block.codes:
            usual_names.names_in(code, names)
        if not names:
            return
        missing = [
            name for name in names
            if not self._exists(name) and usual_names.is_read(name, block.text)
        ]
        if not missing:
            return
        lines = []
        tree = ast.parse(block.text, filename)
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
