"""Whether JSON satisfies a JSON Schema: runs in a sealed helper of the supervisor's, not in runs.

Schema and answer are both foreign: a pattern may take for ever and a reference go round in a
circle. Nothing here guards against that but the helper's limits of time and memory; what it says
is short whatever it was given. It works with Debian 12's python3-jsonschema and later ones.
"""

import itertools
import json
import re
from urllib.parse import unquote, urldefrag, urljoin

from jsonschema import FormatChecker, exceptions, validators

SHOWN = 10  # violations that are told
LINE = 400  # characters of each
NAME = 60  # of one name in a path


def additional_properties(validator, allowed, instance, schema):
    """The library's own has their names in a set: in another order in each process."""
    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    extras = [name for name in instance
              if name not in named and not any(re.search(each, name) for each in patterns)]
    if validator.is_type(allowed, "object"):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        names, verb = ", ".join(map(repr, extras)), "was" if len(extras) == 1 else "were"
        yield exceptions.ValidationError(
            f"Additional properties are not allowed ({names} {verb} unexpected)")


def same(one, other):
    """Whether two values are one in JSON, where true is not 1, however deep."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def enum(_validator, allowed, instance, _schema):
    if not any(same(instance, each) for each in allowed):
        yield exceptions.ValidationError(f"{instance!r} is not one of {allowed!r}")


def const(_validator, wanted, instance, _schema):
    if not same(instance, wanted):
        yield exceptions.ValidationError(f"{wanted!r} was expected")


OURS = {"additionalProperties": additional_properties, "const": const, "enum": enum}


def by_address(*drafts):
    """{address: class}."""
    return {draft.META_SCHEMA.get("$id", draft.META_SCHEMA.get("id")).rstrip("#"):
            validators.extend(draft, OURS)
            for draft in drafts}


DRAFTS = by_address(
    validators.Draft202012Validator, validators.Draft201909Validator,
    validators.Draft7Validator, validators.Draft6Validator, validators.Draft4Validator)
USUAL = DRAFTS[validators.Draft202012Validator.META_SCHEMA["$id"]]
PATTERNS = FormatChecker(["regex"])

# Keywords whose values are schemas, lists of them, and objects of them.
ONE = {"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if",
       "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
SEVERAL = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
NAMED = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties",
         "properties"}
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def warm_up():
    """The library reads its vocabularies when they are first needed; behind walls are no files."""
    for draft in DRAFTS.values():
        draft(draft.META_SCHEMA, format_checker=PATTERNS).is_valid({"pattern": "a"})


warm_up()


def shown(path):
    """A place in JSON, as JSONPath has it: $.findings[0]["a name"]."""
    text = "$"
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_]\w{,59}", part, re.ASCII):
            text += f".{part}"
        else:
            text += f"[{clipped(json.dumps(part, ensure_ascii=False), NAME)}]"
    return text


def clipped(text, most):
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}[...]{text[-half:]}"


def line(path, reason):
    """One line, whatever stands in it, and at most so long."""
    reason = " ".join(clipped(str(reason), LINE).split())
    return f"{clipped(shown(path), LINE)}: {reason}"


def parse(text):
    """ValueError says why it is no JSON."""
    try:
        return json.loads(text, parse_constant=no_number, object_pairs_hook=unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def no_number(name):
    raise ValueError(f"{name} is no number in JSON")


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {clipped(json.dumps(twice), NAME)} occurs twice in one object")
    return members


def draft_of(schema):
    """The validator's class; None: of a dialect that nobody here knows."""
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if name is None:
        return USUAL
    return DRAFTS.get(name.rstrip("#")) if isinstance(name, str) else None


def told(error):
    """Of alternatives the one that came nearest says more than that none of them fits."""
    deepest = exceptions.best_match(iter([error]))
    return line(deepest.absolute_path, deepest.message)


def subschemas(schema, path=(), base=""):
    """(path, schema, base) of it and all within it."""
    stack = [(path, schema, base)]
    while stack:
        path, found, base = stack.pop()
        if not isinstance(found, dict):
            continue
        if isinstance(found.get("$id"), str):
            base = urldefrag(urljoin(base, found["$id"])).url
        yield path, found, base
        for keyword, value in found.items():
            here = (*path, keyword)
            if keyword in NAMED and isinstance(value, dict):
                stack += [((*here, name), within, base) for name, within in value.items()]
            elif keyword in SEVERAL and isinstance(value, list):
                stack += [((*here, i), within, base) for i, within in enumerate(value)]
            elif keyword in ONE:
                stack.append((here, value, base))


NOTHING = object()


def target(document, pointer):
    """The value that a JSON pointer leads to; or NOTHING."""
    for part in unquote(pointer).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            return NOTHING
    return document


def wrong_reference(schema):
    """The first that leads nowhere, out of the document or in a circle; None: all are fine."""
    found, seen, leads = [], set(), {}
    documents, anchors = {"": schema}, {}

    def take(*where):
        for path, inside, base in subschemas(*where):
            if id(inside) in seen:
                continue
            seen.add(id(inside))
            found.append((path, inside, base))
            name = inside.get("$id")
            if isinstance(name, str) and name.startswith("#"):  # up to draft-07 an anchor
                anchors[base, name[1:]] = inside
            elif isinstance(name, str):
                documents[base] = inside
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(inside.get(keyword), str):
                    anchors[base, inside[keyword]] = inside

    take(schema)
    for path, inside, base in found:  # which grows where a pointer leads beside all keywords
        for keyword in REFERENCES:
            reference = inside.get(keyword)
            if not isinstance(reference, str):
                continue
            url, fragment = urldefrag(reference)
            if url in DRAFTS:
                continue  # the library has them
            url = urldefrag(urljoin(base, url)).url if url else base
            if url not in documents:
                return line((*path, keyword), f"{reference!r} leads out of this schema, and "
                            "nothing is fetched: put what it names under $defs")
            is_anchor = fragment and not fragment.startswith("/")
            meant = (anchors.get((url, fragment), NOTHING) if is_anchor
                     else target(documents[url], fragment))
            if meant is NOTHING:
                return line((*path, keyword), f"{reference!r} leads to nothing")
            leads.setdefault(id(inside), []).append(meant)
            if id(meant) not in seen:
                take(meant, (*path, keyword), url)
    if circle([inside for _, inside, _ in found], leads):
        return line((), "its references go round in a circle, so that no check of it would end")
    return None


def in_place(schema):
    """The schemas in it that are about the same value as it is."""
    found = [schema[keyword] for keyword in ("not", "if", "then", "else") if keyword in schema]
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            found += schema[keyword]
    if isinstance(schema.get("dependentSchemas"), dict):
        found += schema["dependentSchemas"].values()
    return found


def circle(found, meant):
    """Whether a schema comes back to itself without a step into the value: no check of it ends.

    `found`: all schemas; `meant`: by the id of each that has references what they lead to.
    """
    open_, done = set(), set()
    for begin in found:
        stack = [(begin, False)]
        while stack:
            schema, is_left = stack.pop()
            if is_left:
                open_.discard(id(schema))
                done.add(id(schema))
            elif id(schema) in open_:
                return True
            elif id(schema) not in done and isinstance(schema, dict):
                open_.add(id(schema))
                stack.append((schema, True))
                stack += [(each, False) for each in in_place(schema) + meant.get(id(schema), [])]
    return False


def wrong_schema(text):
    """Why it is no schema that answers can be held to; None: it is one."""
    try:
        schema = parse(text)
    except ValueError as error:
        return line((), f"this is no JSON: {error}")
    if not isinstance(schema, (dict, bool)):
        return line((), "a schema is an object, or true or false")
    draft = draft_of(schema)
    if draft is None:
        return line(("$schema",), f"{schema['$schema']!r} is not known; leave it out for 2020-12")
    wrong = wrong_tuple(schema, draft)
    if wrong is not None:
        return wrong
    errors = draft(draft.META_SCHEMA, format_checker=PATTERNS).iter_errors(schema)
    worst = exceptions.best_match(errors)
    if worst is not None:
        return line(worst.absolute_path, worst.message)
    return wrong_reference(schema)


def wrong_tuple(schema, draft):
    """A list of schemas in `items`, which 2020-12 has no more, and the library stumbles over."""
    for path, inside, _base in subschemas(schema) if draft is USUAL else ():
        if isinstance(inside.get("items"), list):
            return line((*path, "items"), "a list of schemas is called prefixItems in 2020-12, and "
                        "additionalItems then items; or name the draft that has this in $schema")
    return None


def violations(schema_text, text):
    """A line each; none: the text satisfies the schema."""
    try:
        value = parse(text)
    except ValueError as error:
        return [line((), f"this is no JSON: {error}")]
    schema = json.loads(schema_text)
    errors = draft_of(schema)(schema).iter_errors(value)
    lines = []
    try:
        for error in itertools.islice(errors, SHOWN):
            lines.append(told(error))
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # the library's own faults, which an answer may not be lost by
        lines.append(line((), "the check could not be finished, so that this is not known to be "
                          f"right: {type(error).__name__}: {error}"))
    if len(lines) == SHOWN:
        lines.append("... and perhaps more")
    return lines


def tell(check):
    """Prints what check() returns; or `failed`, what it would have needed more of."""
    try:
        result = check()
    except MemoryError:
        result = {"failed": "memory"}
    except RecursionError:
        result = {"failed": "depth"}
    print(json.dumps(result))


def check_schemas(texts):
    """`texts` is JSON, an array of schemas as strings: which is the first bad one, and why."""
    tell(lambda: first_wrong(json.loads(texts)))


def first_wrong(texts):
    for index, text in enumerate(texts):
        wrong = wrong_schema(text)
        if wrong is not None:
            return {"index": index, "wrong": [wrong]}
    return {"wrong": []}


def check_answer(schema, text):
    tell(lambda: {"wrong": violations(schema, text)})
