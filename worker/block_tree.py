"""What is changed in a block's syntax tree before it is compiled, and read from it."""

import ast

RETURN = "__return__"  # a builtin of ours that changed code calls

SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef


def call(name, argument, place):
    """name(argument), at the place of a node."""
    made = ast.Call(ast.Name(name, ast.Load()), [argument], [])
    ast.copy_location(made, place)
    ast.copy_location(made.func, place)
    return made


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
