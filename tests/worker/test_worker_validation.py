"""worker/validation.py: what is a schema, what satisfies it, and how it is said."""

import json
import sys
import unittest

import supervisor

sys.path.append(supervisor.ROOT + "/worker")
import validation  # noqa: E402

NOWHERE = [
    {"$ref": "http://127.0.0.1/"}, {"$ref": "file:///etc/passwd"}, {"$ref": "other.json"},
    {"items": [1, {"$ref": "//host/x"}][1]}, {"properties": {"const": {"$ref": "x"}}},
    {"dependentSchemas": {"a": {"allOf": [True, {"not": {"$dynamicRef": "y#z"}}]}}},
    {"$id": "https://a.example/s", "$ref": "https://a.example/t"},
    {"$ref": "#/x", "x": {"$ref": "#/y/0"}, "y": [{"items": {"$ref": "http://127.0.0.1:9/x"}}]},
    {"items": {"$ref": "#/examples/0"}, "examples": [{"$ref": "file:///etc/passwd"}]},
]
INSIDE = [
    {"items": {"$ref": "#"}}, {"$defs": {"a b/c": {}}, "$ref": "#/$defs/a%20b~1c"},
    {"$defs": {"a": {"$anchor": "here"}}, "$ref": "#here"},
    {"$id": "https://a.example/s", "$defs": {"t": {"$id": "t"}}, "items": {"$ref": "t"}},
    {"const": {"$ref": "http://data/"}, "enum": [{"$ref": "x"}], "examples": [{"$ref": "y"}]},
    {"properties": {"$ref": {"type": "string"}}},
    {"$ref": "#/x", "x": {"$ref": "#/y"}, "y": {"items": {"$ref": "#/x"}}},
    {"prefixItems": [{"type": "string"}], "items": {"$ref": "#/prefixItems/0"}},
    {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#here",
     "definitions": {"a": {"$id": "#here", "type": "integer"}}},
]
OUTDATED = {"items": [{}, {"items": [{}], "additionalItems": False}], "additionalItems": False}


class Schemas(unittest.TestCase):
    def test_references(self):
        for schema in NOWHERE:
            with self.subTest(schema=schema):
                self.assertIn("leads out of this schema", validation.wrong_schema(json.dumps(schema)))
        for schema in INSIDE:
            with self.subTest(schema=schema):
                self.assertIsNone(validation.wrong_schema(json.dumps(schema)))
        for reference in ("#/$defs/a", "#nowhere", "#/items/7"):
            wrong = validation.wrong_schema(json.dumps({"$ref": reference}))
            self.assertIn("leads to nothing", wrong)

    def test_a_tuple_of_an_earlier_draft(self):
        """Debian 12's jsonschema takes it for a schema and raises AttributeError for answers."""
        wrong = validation.wrong_schema(json.dumps({"not": OUTDATED}))
        self.assertIn("$.not.items: a list of schemas is called prefixItems", wrong)
        for draft in ("2019-09/schema", "2020-12/schema"):
            named = {"$schema": f"https://json-schema.org/draft/{draft}", **OUTDATED}
            self.assertEqual(validation.wrong_schema(json.dumps(named)) is None, "2019" in draft)

    def test_circles(self):
        """Only what goes round without a step into the value has no end."""
        tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
        same = {"$defs": {"a": {"type": "string"}}, "allOf": [{"$ref": "#/$defs/a"}] * 3,
                "anyOf": [{"$ref": "#/$defs/a"}, {"not": {"$ref": "#/$defs/a"}}]}
        node = {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}}
        for schema in (tree, same, node):
            self.assertIsNone(validation.wrong_schema(json.dumps(schema)))
        for schema in ({"$ref": "#"}, {"type": "object", "anyOf": [{"type": "null"}, {"$ref": "#"}]},
                       {"items": {"$anchor": "a", "then": {"$ref": "#a"}, "if": True}},
                       {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}):
            with self.subTest(schema=schema):
                self.assertIn("in a circle", validation.wrong_schema(json.dumps(schema)))

    def test_what_is_none(self):
        for text, words in (("[]", "an object, or true or false"), ("{", "no JSON"),
                            ('{"a": NaN}', "NaN is no number"), ('{"a": 1, "a": 2}', '"a" occurs twice'),
                            ('{"type": 1}', "$.type"), ('{"required": "a"}', "$.required: 'a' is not"),
                            ('{"items": {"pattern": "["}}', "$.items.pattern: '[' is not a 'regex'"),
                            ('{"$schema": 1}', "is not known"), ("[" * 100000, "too deeply")):
            with self.subTest(text=text[:40]):
                self.assertIn(words, validation.wrong_schema(text))

    def test_drafts(self):
        old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
        self.assertIsNone(validation.wrong_schema(json.dumps(old)))
        self.assertEqual(validation.violations(json.dumps(old), "[1]"), ["$[0]: 1 is not of type 'string'"])
        del old["$schema"]
        self.assertIn("$.items", validation.wrong_schema(json.dumps(old)))


class Answers(unittest.TestCase):
    def wrong(self, schema, text):
        return validation.violations(json.dumps(schema), text)

    def test_places(self):
        schema = {"additionalProperties": {"additionalProperties": {"items": {"type": "null"}}}}
        answer = {"a": {"b c": [None, 1]}, "x" * 200: {"\n\x1b": ["é"]}}
        first, second = self.wrong(schema, json.dumps(answer))
        self.assertEqual(first, """$.a["b c"][1]: 1 is not of type 'null'""")
        self.assertRegex(second, r"""^\$\["x+\[...\]x+"\]\["\\n\\u001b"\]\[0\]: 'é' is not""")

    def test_additional_properties(self):
        """In the answer's own order, whatever that of a set is in this process."""
        names = [f"name-{i}" for i in range(20)]
        schema = {"properties": {"name-3": {}}, "patternProperties": {"1$": {}}, "additionalProperties": False}
        [line] = self.wrong(schema, json.dumps(dict.fromkeys(names)))
        self.assertIn(", ".join(map(repr, ["name-0", "name-2", "name-4", "name-5"])), line)
        [line] = self.wrong(schema, '{"name-1": 1, "other": 2}')
        self.assertEqual(line, "$: Additional properties are not allowed ('other' was unexpected)")
        self.assertEqual(self.wrong(schema, '{"name-1": 1, "name-3": 2}'), [])

    def test_each_is_short(self):
        schema = {"items": {"type": "null"}}
        lines = self.wrong(schema, json.dumps([["y" * 10**5 + "\r\n\x1b"]] * 20))
        self.assertEqual(len(lines), 11)
        for line in lines:
            self.assertLess(len(line), 900)
            self.assertNotRegex(line, r"[\x00-\x1f]")
        self.assertEqual(lines[-1], "... and perhaps more")

    def test_alternatives(self):
        """The one that came nearest is told."""
        schema = {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}},
                            {"type": "object", "properties": {"b": {"maximum": 3}}, "required": ["b"]}]}
        self.assertEqual(self.wrong(schema, '{"a": 1}'), [])
        self.assertEqual(len(self.wrong(schema, '{"a": "x"}')), 1)

    def test_no_json(self):
        for text in ("", "nope", "{'a': 1}", "[1,]", "NaN", "-Infinity", '{"a": 1, "a": 1}', "[" * 10**5,
                     "1" * 5000, '"\n"'):
            with self.subTest(text=text[:20]):
                (line,) = self.wrong(True, text)
                self.assertTrue(line.startswith("$: this is no JSON"), line)

    def test_what_the_library_cannot_check(self):
        """A crash is told as a violation, beside those that were found before it."""
        lines = validation.violations(json.dumps(OUTDATED), "[1, [2, 3], 4]")
        self.assertRegex(lines[-1], r"^\$: the check could not be finished.*AttributeError")
        pointer = {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}
        self.assertEqual(validation.violations(json.dumps(pointer), "1"),
                         ["$: 1 is not of type 'string'"])

    def test_true_is_not_one(self):
        """However deep, and whatever the library says."""
        schema = json.dumps({"enum": [[0], {"a": [True]}]})
        for text, right in (("[0]", True), ("[0.0]", True), ("[false]", False), ("[0, 0]", False),
                            ('{"a": [true]}', True), ('{"a": [1]}', False), ("0", False)):
            self.assertEqual(not validation.violations(schema, text), right, text)
        schema = json.dumps({"const": {"a": [1, {"b": False}]}})
        self.assertEqual(validation.violations(schema, '{"a": [1.0, {"b": false}]}'), [])
        self.assertRegex(validation.violations(schema, '{"a": [true, {"b": 0}]}')[0], "was expected")

    def test_what_satisfies(self):
        self.assertEqual(self.wrong({"format": "date"}, '"no date"'), [])
        self.assertEqual(self.wrong({"type": "integer"}, "12345678901234567890123"), [])
        self.assertEqual(self.wrong({"pattern": "^é"}, '"\\u00e9"'), [])


if __name__ == "__main__":
    unittest.main()
