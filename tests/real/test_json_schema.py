"""worker/validation.py against the official test suite of JSON Schema, from tools/real-servers.

Left out is what needs a document that would have to be fetched, and what is optional in the suite.
"""

import json
import pathlib
import sys
import unittest

import servers

sys.path.append(str(servers.HERE.parents[1] / "worker"))

DRAFTS = {"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
          "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
          "draft7": "http://json-schema.org/draft-07/schema#"}
# Groups that Debian 12's jsonschema 4.10.3 judges wrongly; it resolves references by a way of its
# own. Later versions judge some of them right.
WRONG = {
    "anchor": [
        "same $anchor with different base uri",
    ],
    "defs": [
        "validate definition against metaschema",
    ],
    "dynamicRef": [
        "$dynamicRef points to a boolean schema",
        "$dynamicRef skips over intermediate resources - direct reference",
        "A $dynamicRef that initially resolves to a schema with a matching "
        "$dynamicAnchor resolves to the first $dynamicAnchor in the dynamic scope",
        "A $dynamicRef without anchor in fragment behaves identical to $ref",
        "after leaving a dynamic scope, it is not used by a $dynamicRef",
        "multiple dynamic paths to the $dynamicRef keyword",
    ],
    "recursiveRef": [
        "$recursiveRef with $recursiveAnchor: false works like $ref",
        "$recursiveRef with no $recursiveAnchor in the initial target schema resource",
        "$recursiveRef with no $recursiveAnchor in the outer schema resource",
        "$recursiveRef with no $recursiveAnchor works like $ref",
        "$recursiveRef without $recursiveAnchor works like $ref",
        "$recursiveRef without using nesting",
        "dynamic $recursiveRef destination (not predictable at schema compile time)",
        "multiple dynamic paths to the $recursiveRef keyword",
    ],
    "ref": [
        "$id must be resolved against nearest parent, not just immediate parent",
        "$ref prevents a sibling $id from changing the base uri",
        "$ref with $recursiveAnchor",
        "URN ref with nested pointer ref",
        "empty tokens in $ref json-pointer",
        "ref overrides any sibling keywords",
        "ref to else",
        "ref to if",
        "ref to then",
    ],
    "unevaluatedItems": [
        "item is evaluated in an uncle schema to unevaluatedItems",
        "unevaluatedItems before $ref",
        "unevaluatedItems with $dynamicRef",
        "unevaluatedItems with $recursiveRef",
        "unevaluatedItems with $ref",
        "unevaluatedItems with anyOf",
        "unevaluatedItems with if/then/else",
        "unevaluatedItems with nested tuple",
        "unevaluatedItems with not",
        "unevaluatedItems with oneOf",
        "unevaluatedItems with tuple",
    ],
    "unevaluatedProperties": [
        "unevaluatedProperties with $dynamicRef",
        "unevaluatedProperties with $recursiveRef",
        "unevaluatedProperties with adjacent non-bool additionalProperties",
    ],
}


def setUpModule():
    servers.wanted()


class Suite(unittest.TestCase):
    def judged(self, draft):
        """(file, group, test, its violations) of all tests whose schema is taken."""
        import validation

        for path in sorted(pathlib.Path(servers.PLACE, "json-schema-suite", draft).glob("*.json")):
            for group in json.loads(path.read_text()):
                schema = group["schema"]
                if isinstance(schema, dict):
                    schema = {"$schema": DRAFTS[draft], **schema}
                text = json.dumps(schema)
                if validation.wrong_schema(text) is not None:
                    self.refused += 1
                    continue
                for test in group["tests"]:
                    lines = validation.violations(text, json.dumps(test["data"]))
                    yield path.stem, group["description"], test, lines

    def test_all_drafts(self):
        self.refused, right, wrong, unknown = 0, 0, 0, []
        for draft in DRAFTS:
            for file, group, test, lines in self.judged(draft):
                if (not lines) == test["valid"]:
                    right += 1
                    continue
                wrong += 1
                if group not in WRONG.get(file, ()):
                    unknown.append((draft, file, group, test["description"], lines))
        print(f"# {right} right, {wrong} wrong, {self.refused} groups refused")
        self.assertGreater(right, 3000)
        self.assertEqual(unknown, [])


if __name__ == "__main__":
    unittest.main()
