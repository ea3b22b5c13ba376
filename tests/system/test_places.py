"""A session has no files, processes or network, and says so; files of its own, and honest code, work.

Every row of the tables runs in a real worker behind its walls.
"""

import os
import unittest

from harness import SystemTest, block, turn

FILES = "there are no files of the machine here"
PROCESSES = "no program or other process can be started here"
NETWORK = "there is no network here"
MEMORY = "memory cannot be shared or mapped here"

# Code that fails: it, the exception's type as it was before it had words, and words of it.
REFUSED = (
    ("open('data.csv')", "PermissionError", FILES),
    ("import io; io.open('data.csv', 'rb')", "PermissionError", FILES),
    ("import codecs; codecs.open('data.csv')", "PermissionError", FILES),
    ("from pathlib import Path; Path('data.csv').read_text()", "PermissionError", FILES),
    ("from pathlib import Path; list(Path('.').iterdir())", "PermissionError", FILES),
    ("import os; os.listdir('/')", "PermissionError", FILES),
    ("import os; os.scandir()", "PermissionError", FILES),
    ("import os; os.stat('/etc/passwd')", "PermissionError", FILES),
    ("import os; os.open('/etc/passwd', os.O_RDONLY)", "PermissionError", FILES),
    ("import os; os.remove('x')", "PermissionError", FILES),
    ("import os; os.symlink('a', 'b')", "PermissionError", FILES),
    ("import os; os.chdir('/home')", "PermissionError", FILES),
    ("from os import listdir; listdir('/home')", "PermissionError", FILES),
    ("import shutil; shutil.copy('a', 'b')", "PermissionError", FILES),
    ("import shutil; shutil.disk_usage('/')", "PermissionError", FILES),
    ("import gzip; gzip.open('a.gz')", "PermissionError", FILES),
    ("import bz2; bz2.open('a.bz2')", "PermissionError", FILES),
    ("import zipfile; zipfile.ZipFile('a.zip')", "PermissionError", FILES),
    ("import tarfile; tarfile.open('a.tar')", "PermissionError", FILES),
    ("import json; json.load(open('a.json'))", "PermissionError", FILES),
    ("import fileinput; list(fileinput.input('a'))", "PermissionError", FILES),
    ("import urllib.request; urllib.request.urlopen('file:///etc/passwd')", "URLError", FILES),
    ("import subprocess; subprocess.run(['ls'], capture_output=True)", "PermissionError", PROCESSES),
    ("import subprocess; subprocess.run('ls', shell=True)", "PermissionError", PROCESSES),
    ("import subprocess; subprocess.check_output(['ls'])", "PermissionError", PROCESSES),
    ("import os; os.popen('ls').read()", "PermissionError", PROCESSES),
    ("import os; os.fork()", "PermissionError", PROCESSES),
    ("import os; os.execv('/bin/ls', ['ls'])", "PermissionError", PROCESSES),
    ("import multiprocessing as m; m.Pool(2)", "PermissionError", PROCESSES),
    ("import multiprocessing as m; m.Process(target=print).start()", "PermissionError", PROCESSES),
    ("import multiprocessing as m; m.Lock()", "PermissionError", PROCESSES),
    ("import multiprocessing as m; m.Queue()", "PermissionError", PROCESSES),
    ("from concurrent.futures import ProcessPoolExecutor as P; list(P(2).map(len, ['a']))",
     "PermissionError", PROCESSES),
    ("import asyncio; asyncio.run(asyncio.create_subprocess_exec('ls'))", "PermissionError", PROCESSES),
    ("import socket; socket.socket()", "PermissionError", NETWORK),
    ("import socket; socket.create_connection(('example.com', 80))", "gaierror", NETWORK),
    ("import socket; socket.create_connection(('127.0.0.1', 80))", "PermissionError", NETWORK),
    ("import socket; socket.gethostbyname('example.com')", "gaierror", NETWORK),
    ("import urllib.request; urllib.request.urlopen('http://example.com')", "URLError", NETWORK),
    ("import http.client; http.client.HTTPConnection('example.com').request('GET', '/')", "gaierror",
     NETWORK),
    ("import ftplib; ftplib.FTP('example.com')", "gaierror", NETWORK),
    ("import asyncio; asyncio.run(asyncio.open_connection('example.com', 80))", "gaierror", NETWORK),
    ("import mmap; mmap.mmap(-1, 4096, mmap.MAP_SHARED)", "PermissionError", MEMORY),
    ("from multiprocessing import shared_memory as s; s.SharedMemory(create=True, size=10)",
     "PermissionError", MEMORY),
    ("import sqlite3; sqlite3.connect('x.db')", "OperationalError", "sqlite3.connect(':memory:')"),
    ("import inspect, json; inspect.getsource(json.dumps)", "OSError", "of a library's code is not here"),
    ("import locale; locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')", "Error", "no such locale here"),
    ("input('name?')", "EOFError", "nobody can answer"),
    ("import sys; sys.stdin.read()", "EOFError", "`context`"),
)

# Code that says nothing by itself: it, what it prints as before, and words of the note beside it.
SILENT = (
    ("import os; print(os.path.exists('data.csv'))", "False", FILES),
    ("import os; print(os.path.isfile('a'), os.path.isdir('b'), os.access('c', os.R_OK))",
     "False False False", FILES),
    ("from pathlib import Path; print(Path('a').exists(), Path('a').is_file())", "False False", FILES),
    ("import glob; print(glob.glob('*.csv'))", "[]", FILES),
    ("import os; print(list(os.walk('/data')))", "[]", FILES),
    ("from pathlib import Path; print(list(Path('/data').rglob('*.txt')))", "[]", FILES),
    ("import os; print(os.system('ls'))", "32512", PROCESSES),
)

# Code that works, and what it prints.
WORKS = (
    ("open('out.txt', 'w').write('a\\nb\\n'); print(open('out.txt').read().split())", "['a', 'b']"),
    ("import os; print(os.listdir(), os.path.exists('out.txt'), os.path.getsize('out.txt'))",
     "['out.txt'] True 4"),
    ("import glob; print(glob.glob('*.txt'), glob.glob('**/*.txt', recursive=True))",
     "['out.txt'] ['out.txt']"),
    ("from pathlib import Path; p = Path('d/e.txt'); p.parent.mkdir(parents=True, exist_ok=True); "
     "p.write_text('hé'); print(p.read_text(), p.stat().st_size, p.exists(), list(p.parent.iterdir()))",
     "hé 3 True [PosixPath('d/e.txt')]"),
    ("print(sorted(Path('.').rglob('*.txt')), list(Path('d').glob('*')))",
     "[PosixPath('d/e.txt'), PosixPath('out.txt')] [PosixPath('d/e.txt')]"),
    ("Path('t').touch(); Path('t').rename('u'); Path('u').unlink(); print(Path('u').exists())", "False"),
    ("import csv\nwith open('t.csv', 'w', newline='') as f: csv.writer(f).writerow([1, 'x'])\n"
     "with open('t.csv') as f: print(list(csv.DictReader(f, ['n', 'w'])))", "[{'n': '1', 'w': 'x'}]"),
    ("import json\nwith open('j.json', 'w') as f: json.dump({'a': 1}, f)\nprint(json.load(open('j.json')))",
     "{'a': 1}"),
    ("import pickle; pickle.dump([1], open('p', 'wb')); print(pickle.load(open('p', 'rb')))", "[1]"),
    ("with open('ab', 'ab') as f: f.write(b'x')\nwith open('ab', 'ab') as f: f.write(b'y')\n"
     "print(open('ab', 'rb').read())", "b'xy'"),
    ("import os, tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n    f.write('hi'); f.flush()\n"
     "    print(open(f.name).read())\nprint(os.path.exists(f.name))", "hi\nFalse"),
    ("with tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'x'), 'w').close()\n"
     "    print(os.listdir(d))\nprint(os.path.exists(d))", "['x']\nFalse"),
    ("fd, n = tempfile.mkstemp(); os.write(fd, b'abc'); os.close(fd); print(open(n).read(), tempfile.gettempdir())",
     "abc /tmp"),
    ("f = tempfile.TemporaryFile(); f.write(b'x'); f.seek(0); print(f.read())", "b'x'"),
    ("import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.writestr('q', 'w'); z.write('out.txt')\n"
     "zipfile.ZipFile('a.zip').extractall('ex'); print(open('ex/out.txt').read().split())", "['a', 'b']"),
    ("import gzip, bz2, lzma\nfor m in (gzip, bz2, lzma):\n    with m.open('c', 'wt') as f: f.write('z')\n"
     "    print(m.open('c', 'rt').read(), end='')\nprint()", "zzz"),
    ("import tarfile\nwith tarfile.open('t.tgz', 'w:gz') as t: t.add('d')\nprint(tarfile.open('t.tgz').getnames())",
     "['d', 'd/e.txt']"),
    ("import shutil; shutil.copytree('d', 'd2'); shutil.copy('out.txt', 'd2'); shutil.move('d2', 'd3'); "
     "print(os.listdir('d3')); shutil.rmtree('d3'); print('d3' in os.listdir())",
     "['e.txt', 'out.txt']\nFalse"),
    ("import shelve\nwith shelve.open('s') as s: s['k'] = [1]\nprint(shelve.open('s')['k'])", "[1]"),
    ("import logging; logging.basicConfig(filename='x.log', force=True); logging.warning('hm'); "
     "print(open('x.log').read().strip())", "WARNING:root:hm"),
    ("import configparser; c = configparser.ConfigParser(); print(c.read('x.ini')); c['a'] = {'b': 'c'}\n"
     "with open('x.ini', 'w') as f: c.write(f)\nprint(configparser.ConfigParser().read('x.ini'))",
     "[]\n['x.ini']"),
    ("import xml.etree.ElementTree as E; E.ElementTree(E.Element('a')).write('x.xml'); "
     "print(E.parse('x.xml').getroot().tag)", "a"),
    ("import contextlib, os\nwith open(os.devnull, 'w') as f, contextlib.redirect_stdout(f): print('x')\nprint('y')",
     "y"),
    ("open('written.py', 'w').write('def f(): return 5'); import written; print(written.f())", "5"),
    ("names = 'helpers', 'search', 'answers', 'repl', 'library'\n"
     "for n in names: open(n + '.py', 'w').write('v = %r' % n)\n"
     "print([__import__(n).v for n in names] == [*names])", "True"),
    ("os.makedirs('pk'); open('pk/__init__.py', 'w').write('from .a import y'); "
     "open('pk/a.py', 'w').write('y = 2'); import pk; print(pk.y)", "2"),
    ("import runpy; print(sorted(runpy.run_path('written.py'))[-1])", "f"),
    ("import linecache; print(linecache.getline('out.txt', 2).strip())", "b"),
    ("os.makedirs('w/x'); os.chdir('w'); print(os.getcwd(), os.listdir()); os.chdir('/')", "/w ['x']"),
    ("from zoneinfo import ZoneInfo\nfrom datetime import datetime\n"
     "print(datetime(2024, 7, 1, tzinfo=ZoneInfo('America/New_York')).isoformat())", "2024-07-01T00:00:00-04:00"),
    ("import zoneinfo; print('Europe/Berlin' in zoneinfo.available_timezones())", "True"),
    ("import getpass, os; print(getpass.getuser(), os.getlogin(), os.environ['USER'])", "user user user"),
    ("import locale; print(locale.setlocale(locale.LC_ALL, '') != '', locale.setlocale(locale.LC_ALL, 'C'))",
     "True C"),
    ("import os, pathlib; print(os.getcwd(), pathlib.Path.cwd(), pathlib.Path.home(), os.path.expanduser('~'))",
     "/ / / /"),
    ("import os, platform; print(os.cpu_count() > 0, bool(platform.platform()), platform.system())", "True True Linux"),
    ("from multiprocessing.pool import ThreadPool\nwith ThreadPool(2) as p: print(p.map(len, ['a', 'bb']))", "[1, 2]"),
    ("from multiprocessing.dummy import Pool\np = Pool(2); print(p.map(len, ['a', 'bb'])); p.close(); p.join()",
     "[1, 2]"),
    ("from concurrent.futures import ThreadPoolExecutor as T; print(list(T(2).map(len, ['a', 'bb'])))", "[1, 2]"),
    ("import mmap; m = mmap.mmap(-1, 10); m[:3] = b'abc'; print(bytes(m[:3]), isinstance(m, mmap.mmap))", "b'abc' True"),
    ("import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t(x)'); "
     "c.execute('insert into t values (3)'); print(c.execute('select * from t').fetchall())", "[(3,)]"),
    ("import io, csv; print(next(csv.reader(io.StringIO(context))))", "['a', 'b']"),
    ("def f():\n    return 1\nimport inspect; print(inspect.getsource(f), end='')", "def f():\n    return 1"),
    ("import asyncio\nasync def f(): await asyncio.sleep(0); return 4\nprint(asyncio.run(f()))", "4"),
    ("import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))", "b'x'"),
    ("import importlib.util; print(importlib.util.find_spec('pandas'))", "None"),
    ("import mimetypes, uuid, secrets; print(mimetypes.guess_type('a.csv')[0], len(secrets.token_hex(2)))",
     "text/csv 4"),
    ("import argparse; print(argparse.ArgumentParser().parse_args([]))", "Namespace()"),
)

# Code that catches what it waited for goes on as before; its own names are its own.
TWINS = (
    ("try:\n    open('cache.json')\nexcept FileNotFoundError as e:\n    print(e.errno, e.filename)", "2 cache.json"),
    ("try:\n    open('cache.json')\nexcept PermissionError as e:\n    print(type(e).__name__, e.filename)",
     "PermissionError cache.json"),
    ("try:\n    import pandas\nexcept ImportError as e:\n    print(type(e).__name__, e.name)",
     "ModuleNotFoundError pandas"),
    ("import urllib.request, urllib.error\ntry:\n    urllib.request.urlopen('http://a.example')\n"
     "except urllib.error.URLError as e:\n    print(type(e.reason).__name__)", "gaierror"),
    ("def open(x): return 'mine ' + x\ndef glob(x): return [x]\nprint(open('a'), glob('b'))", "mine a ['b']"),
    ("import builtins; del open; print(open is builtins.open)", "True"),
    ("import os\nclass os_like: path = os.path\nprint(os_like.path.join('a', 'b'), os.path.abspath('x'))", "a/b /x"),
    ("print(os.path.realpath('a/../b'), os.path.basename('c/d'), os.path.splitext('e.f'))", "/b d ('e', '.f')"),
)


class Places(SystemTest):
    def run_rows(self, rows):
        """The executions of the rows' code, in one session a table."""
        arguments = ["--max-iterations", len(rows) + 2]
        if "RLMD_TEST_PYTHON" in os.environ:  # another interpreter than the usual one
            arguments += ["--python", os.environ["RLMD_TEST_PYTHON"]]
        executions, self.outcome = self.blocks(
            *[row[0] for row in rows], arguments=arguments, context="a,b\n1,2\n")
        return zip(rows, executions)

    def test_what_is_not_there_says_so(self):
        for (code, kind, words), done in self.run_rows(REFUSED):
            with self.subTest(code):
                last = (done["error"] or "").strip().splitlines()[-1:] or ["no error: " + done["stdout"]]
                self.assertRegex(last[0], rf"^([\w.]+\.)?{kind}: ")
                self.assertIn(words, last[0])
                self.assertNotIn("Operation not permitted", last[0])

    def test_what_says_nothing_is_noted_once(self):
        for (code, shown, words), done in self.run_rows(SILENT):
            with self.subTest(code):
                self.assertEqual((done["error"], done["stdout"]), (None, shown + "\n"))
                self.assertEqual(done["stderr"].count("[note]"), 1, done["stderr"])
                self.assertIn(words, done["stderr"])

    def test_files_of_its_own_and_honest_code(self):
        for (code, shown), done in self.run_rows(WORKS):
            with self.subTest(code):
                self.assertIsNone(done["error"], done["error"])
                self.assertEqual((done["stdout"], done["stderr"]), (shown + "\n", ""))

    def test_code_that_was_right_before_still_is(self):
        for (code, shown), done in self.run_rows(TWINS):
            with self.subTest(code):
                self.assertEqual((done["error"], done["stdout"], done["stderr"]), (None, shown + "\n", ""))

    def test_an_inputs_file_is_named_not_served(self):
        self.write("src/a.py", "alpha")
        self.write("src/sub/b.py", "beta")
        rows = [("open('a.py')", "context.files['a.py']"),
                ("open('./sub/b.py')", "context.files['sub/b.py']"),
                ("open('b.py')", "context.files['sub/b.py']"),
                ("open('/home/me/src/sub/b.py')", "context.files['sub/b.py']"),
                ("import os; os.path.exists('b.py')", "context.files['sub/b.py']"),
                ("open('c.py')", "there are no files of the machine here")]
        arguments = ["--max-iterations", 9, "-c", self.dir / "src"]
        executions, _ = self.blocks(*[row[0] for row in rows], arguments=arguments)
        for (code, words), done in zip(rows, executions):
            with self.subTest(code):
                self.assertIn(words, (done["error"] or "") + done["stderr"])

    def test_every_module_of_the_standard_library(self):
        """All but what has no use here, or is not of this interpreter, can be imported."""
        code = ("import importlib, sys\nfailed = []\n"
                "for name in sorted(getattr(sys, 'stdlib_module_names', ['json'])):\n"
                "    if name.startswith('_') or name in ('this', 'antigravity', 'idlelib', 'turtledemo'): continue\n"
                "    try: importlib.import_module(name)\n"
                "    except ImportError as error: failed.append(name)\n"
                "print(*failed)")
        executions, _ = self.blocks(code, context="x")
        left_out = {"curses", "ensurepip", "lib2to3", "nis", "ossaudiodev", "readline", "test", "tkinter", "turtle",
                    "msilib", "msvcrt", "nt", "winreg", "winsound", "crypt", "spwd", "nturl2path", "rlcompleter"}
        self.assertIsNone(executions[0]["error"], executions[0]["error"])
        self.assertLessEqual(set(executions[0]["stdout"].split()), left_out)

    def test_files_count_as_memory(self):
        code = ("f = open('big', 'wb')\n"
                "for number in range(100_000): f.write(bytes(1 << 20))")
        executions, _ = self.blocks(code, "import os; print(os.path.getsize('big') > 1 << 20); os.remove('big')",
                                    "f = None; open('small', 'w').write('x'); print(len(bytes(64 << 20)))",
                                    context="x", arguments=["--worker-memory", "256M"])
        self.assertIn("MemoryError: the memory of this session is used up", executions[0]["error"])
        self.assertEqual([done["stdout"] for done in executions[1:]], ["True\n", "67108864\n"])

    def test_sub_runs_and_new_workers_have_files_of_their_own(self):
        """A worker that replaces a dead one begins without: nothing of it was on the machine."""
        executions, _ = self.blocks("open('f', 'w').write('x')", "import os; os._exit(1)",
                                    "import os; print(os.path.exists('f'))", context="x")
        self.assertEqual(executions[2]["stdout"], "False\n")


class Modules(SystemTest):
    def test_a_missing_module_is_told_to_both(self):
        """To the model: nothing can be installed, what there is. To the user, once: --preload."""
        entries = [turn(block("import pandas as pd")), turn(block("from pandas import DataFrame")),
                   turn(block("import no_such_module_at_all")), turn("FINAL(done)")]
        outcome = self.replay(entries, "--json", context="x")
        errors = [done["error"] for done in outcome.executions()]
        self.assertIn("ModuleNotFoundError: No module named 'pandas': nothing can be installed here. There is the "
                      "standard library", errors[0])
        self.assertIn("csv.DictReader(io.StringIO(context))", errors[0])
        self.assertNotIn("In place of", errors[2])
        warnings = [text for text in outcome.result["warnings"] if "preload" in text]
        self.assertEqual([text.count("pandas") for text in warnings], [2, 0])
        self.assertEqual(outcome.err.count(": preload pandas"), 1, outcome.err)

    def test_our_functions_are_in_no_module(self):
        codes = ["from tools import llm_query", "import rlm_utils", "from repl import FINAL, llm_query"]
        outcome = self.replay([*map(turn, map(block, codes)), turn("FINAL(done)")], "--json", context="x")
        for done in outcome.executions():
            self.assertIn("the functions of this session are there without an import", done["error"])
        self.assertEqual([text for text in outcome.result["warnings"] if "preload" in text], [])

    def test_what_is_left_out_is_no_matter_for_the_user(self):
        outcome = self.replay([turn(block("import tkinter")), turn("FINAL(done)")], "--json", context="x")
        self.assertIn("left out here", outcome.executions()[0]["error"])
        self.assertEqual([text for text in outcome.result["warnings"] if "preload" in text], [])

    def venv(self):
        """As of a virtual environment, with two packages in it; one keeps functions from its start."""
        import subprocess
        import sys
        path = self.dir / "venv"
        made = subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], capture_output=True)
        if made.returncode:
            self.skipTest("this Python makes no virtual environments: " + made.stderr.decode()[:200])
        packages = next(path.glob("lib/python*/site-packages"))
        (packages / "bigtable").mkdir()
        (packages / "bigtable/__init__.py").write_text(
            "import io\nfrom os import listdir\n__version__ = '1.5'\nkept = {'open': io.open}\n"
            "loaded = len(listdir(__path__[0])) and bool(open(__file__).read())\n"
            "def read(path):\n    return open(path).read() + kept['open'](path).read() + listdir()[0]\n")
        (packages / "other.py").write_text("x = 1\n")
        return path / "bin/python3"

    def test_what_is_installed_but_not_loaded_is_said(self):
        python = self.venv()
        arguments = ["--json", "--python", python, "--preload", "bigtable"]
        entries = [turn(block("import bigtable; open('f', 'w').write('mine'); print(bigtable.read('f'), bigtable.loaded)")),
                   turn(block("import other")), turn(block("bigtable.read('g')")),
                   turn(block("import importlib.metadata as m; m.version('bigtable')")), turn("FINAL(done)")]
        outcome = self.replay(entries, *arguments, context="x")
        read, other, missing, version = outcome.executions()
        self.assertEqual((version["error"], version["stdout"]), (None, "'1.5'\n"))
        self.assertEqual((read["error"], read["stdout"]), (None, "mineminef True\n"))
        self.assertIn("preloaded: bigtable", other["error"])
        self.assertIn("other is on the machine but was not loaded", other["error"])
        self.assertIn(FILES, missing["error"])
        plain = self.replay([turn(block("import bigtable")), turn("FINAL(done)")], "--json", "--python", python,
                            context="x")
        self.assertIn("bigtable is on the machine but was not loaded", plain.executions()[0]["error"])


if __name__ == "__main__":
    unittest.main()
