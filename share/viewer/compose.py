"""Makes one page of the viewer's parts: compose.py PAGE STYLE SCRIPT OUT.

The page may run this script and use this style, by their SHA-256 (CSP Level 3, 2.3.1), and load
nothing: whatever text a trace puts into it.
"""

import base64
import hashlib
import pathlib
import sys


def main(page, style, script, out):
    page, style, script = (pathlib.Path(name).read_text("utf-8") for name in (page, style, script))
    allowed = [base64.b64encode(hashlib.sha256(part.encode("utf-8")).digest()).decode()
               for part in (script, style)]
    policy = ("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
              "base-uri 'none'; form-action 'none'" % tuple(allowed))
    for name, part in (("@POLICY@", policy), ("@STYLE@", style), ("@SCRIPT@", script)):
        if page.count(name) != 1 or "</" in part:
            sys.exit(f"compose.py: {name} is not there once, or its part would end an element")
        page = page.replace(name, part)
    pathlib.Path(out).write_text(page, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
