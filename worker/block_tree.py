"""Changes to a block's syntax tree before it is compiled, and facts read from it."""

import ast

RETURN = "__return__"    # builtins of ours that changed code calls
AWAITED = "__awaited__"
SHOW = "__show__"

# Functions of asyncio that await what they are given; the second ones of any task group or loop.
COLLECTORS = frozenset(("as_completed", "ensure_future", "gather", "run", "shield", "wait",
                        "wait_for"))
STARTERS = frozenset(("create_task", "ensure_future", "run_coroutine_threadsafe",
                      "run_until_complete"))
CONTAINERS = frozenset(("list", "set", "tuple", "reversed", "iter"))
ADDERS = frozenset(("add", "append", "appendleft", "extend", "insert"))

SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef


def call(name, argument, place):
    """name(argument), at the place of a node."""
    where = {
        "lineno": place.lineno, "col_offset": place.col_offset,
        "end_lineno": place.end_lineno, "end_col_offset": place.end_col_offset,
    }
    return ast.Call(ast.Name(name, ast.Load(), **where), [argument], [], **where)


def nodes_of(scope):
    """The nodes that run in this scope, and the scopes within it."""
    found, inner = [], []
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, SCOPES):
            inner.append(node)
            waiting.extend(getattr(node, "decorator_list", ()))
        else:
            found.append(node)
            waiting.extend(ast.iter_child_nodes(node))
    return found, inner


# A value at the end


def show_last(tree):
    """Lets the last statement, where it is an expression, show its value."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not isinstance(last.value, ast.Starred):
        last.value = call(SHOW, last.value, last.value)


# A `return` outside of any function


class Returns(ast.NodeTransformer):
    """Ends the block by an exception that only a handler of everything would stop."""

    def visit_Return(self, node):
        value = ast.Constant(None) if node.value is None else node.value
        raised = ast.Raise(call(RETURN, ast.copy_location(value, node), node), None)
        return ast.copy_location(raised, node)

    def visit_Try(self, node):
        if not any(catches_all(handler.type) for handler in node.handlers):
            node.body = [self.visit(each) for each in node.body]
        for rest in (node.handlers, node.orelse, node.finalbody):
            rest[:] = [self.visit(each) for each in rest]
        return node

    visit_TryStar = visit_Try

    def leave(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = leave


def catches_all(kind):
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        each is None or isinstance(each, ast.Name) and each.id == "BaseException"
        for each in kinds
    )


def end_at_returns(tree):
    """Whether there were any."""
    if not any(isinstance(node, ast.Return) for node in nodes_of(tree)[0]):
        return False
    Returns().visit(tree)
    return True


# Calls whose results are awaited


def mark_awaited(tree, is_ours):
    """Lets our functions start without waiting where their result is awaited.

    `await llm_query(p)` becomes `await __awaited__(llm_query)(p)`, and so does
    a call that asyncio is given, directly or by way of variables of the same
    scope. Any other call waits for its answer, as in plain code.

    is_ours(name): whether a name of the block is a function of ours.
    """
    scopes = [tree]
    while scopes:
        nodes, inner = nodes_of(scopes.pop())
        Flow(nodes, is_ours).follow()
        scopes.extend(inner)


class Flow:
    """Values that flow into an await, in one scope."""

    def __init__(self, nodes, is_ours):
        self._nodes = nodes
        self._is_ours = is_ours
        self._names = set()  # of variables that are awaited, or whose items are

    def follow(self):
        for node in self._nodes:
            if isinstance(node, ast.Await):
                self._mark(node.value)
            elif isinstance(node, ast.Call) and is_collector(node.func):
                for argument in node.args:
                    self._mark(argument)
        known = None
        while known != len(self._names):
            known = len(self._names)
            for node in self._nodes:
                self._trace(node)

    def _trace(self, node):
        """Backwards, from a variable to what it was made of."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            self._assign(node.target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._iterate(node.target, node.iter)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and node.func.attr in ADDERS and node.args and self._is_awaited(node.func.value)
        ):
            self._mark(node.args[-1])

    def _assign(self, target, value):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its_value in zip(target.elts, value.elts):
                self._assign(one, its_value)
        elif isinstance(target, ast.Tuple):
            if any(self._is_awaited(each) for each in target.elts):
                self._mark(value)
        elif value is not None and self._is_awaited(target):
            self._mark(value)

    def _iterate(self, target, items):
        called = items.func if isinstance(items, ast.Call) else None
        name = getattr(called, "id", None) or getattr(called, "attr", None)
        pair = isinstance(target, ast.Tuple)
        if pair and name == "zip":
            for one, its_items in zip(target.elts, items.args):
                self._iterate(one, its_items)
        elif pair and name == "enumerate" and items.args and len(target.elts) == 2:
            self._iterate(target.elts[1], items.args[0])
        elif pair and name == "items" and len(target.elts) == 2:
            self._iterate(target.elts[1], called.value)
        elif self._is_awaited(target):
            self._mark(items)

    def _is_awaited(self, target):
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        return isinstance(target, ast.Name) and target.id in self._names

    def _mark(self, node):
        if isinstance(node, ast.Name):
            self._names.add(node.id)
        elif isinstance(node, ast.Call):
            self._mark_call(node)
        elif isinstance(node, (ast.Starred, ast.Subscript, ast.NamedExpr)):
            self._mark(node.value)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for each in node.elts:
                self._mark(each)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            self._mark(node.elt)
        elif isinstance(node, ast.DictComp):
            self._mark(node.value)
        elif isinstance(node, ast.Dict):
            for each in node.values:
                self._mark(each)
        elif isinstance(node, ast.IfExp):
            self._mark(node.body)
            self._mark(node.orelse)
        elif isinstance(node, ast.BinOp):
            self._mark(node.left)
            self._mark(node.right)

    def _mark_call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr in ("values", "copy"):
                self._mark(function.value)
        elif isinstance(function, ast.Name):
            if self._is_ours(function.id):
                node.func = call(AWAITED, function, function)
            elif function.id == "map" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Name) and self._is_ours(first.id):
                    node.args[0] = call(AWAITED, first, first)
            elif function.id in CONTAINERS:
                for each in node.args:
                    self._mark(each)


def is_collector(function):
    if isinstance(function, ast.Name):
        return function.id in COLLECTORS - {"run"} or function.id in STARTERS
    if not isinstance(function, ast.Attribute):
        return False
    of_asyncio = isinstance(function.value, ast.Name) and function.value.id == "asyncio"
    return function.attr in STARTERS or of_asyncio and function.attr in COLLECTORS


# Names that the block reads and nobody binds


def unbound(tree, names):
    """Those of `names` that the block reads and binds nowhere, each with its uses.

    {name: attributes}; None among the attributes is a use of the name alone.
    """
    uses, bound = {}, set()
    attributes = {}  # id of a Name node -> the attribute that is taken of it
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                attributes[id(node.value)] = node.attr
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                uses.setdefault(node.id, set()).add(attributes.get(id(node)))
            else:
                bound.add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return {}
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            bound.update(node.names)
        else:  # functions, classes, handlers, patterns
            bound.update(
                value for value in (getattr(node, "name", None), getattr(node, "rest", None))
                if isinstance(value, str)
            )
    return {name: uses[name] for name in names if name in uses and name not in bound}
