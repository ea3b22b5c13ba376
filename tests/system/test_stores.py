"""A store of SQLite that somebody else planted, damaged, holds locked, or uses at the same time."""

import contextlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import threading
import unittest

import patience
import postgres
from model import Reply
from providers import code, final
from test_batch import BatchTest

SIDE_FILES = ("-wal", "-shm", "-journal")
STRANGER = 65534
# Rows without an end: who reads them stops when he is told to, and not before.
ENDLESS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
           " SELECT batch.*, i FROM batch, n")


class StoresTest(BatchTest):
    JOBS = 3

    def setUp(self):
        super().setUp()
        self.server = self.serve("openai")
        self.server.script(None, lambda request: final(request.first_turn.split("task ")[1][0]))
        self.store = self.dir / "results.jsonl.store"
        self.jobs(*({"custom_id": f"job {i}", "task": f"task {i}"} for i in range(self.JOBS)))

    def sql(self, *statements):
        """Done by somebody else, and closed."""
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def hold(self, how="BEGIN IMMEDIATE"):
        """The store, locked by this process until it is rolled back."""
        db = sqlite3.connect(self.store, isolation_level=None)
        self.addCleanup(db.close)
        db.execute(how)
        return db

    def ask(self, command, *arguments, store=None):
        """One of the commands that look at a store that others made."""
        words = {"work": ["-p", "openai", "-m", "m"], "results": ["-o", "fetched.jsonl"]}
        return self.rlmd(command, "--store", store or self.store, *words.get(command, []),
                         *arguments, env=self.environment(**self.server.environment()))

    def everybody(self):
        """The words of each command about the store."""
        yield "batch", self.command()
        for command in ("work", "results", "status"):
            yield command, self.ask(command)

    def refused(self, words, status=2):
        asked = len(self.server.requests)
        for command, outcome in self.everybody():
            with self.subTest(command=command, words=words):
                self.assertEqual(outcome.status, status, outcome.err)
                self.assertIn(words, outcome.err)
                self.assertEqual(outcome.out, "")
        self.assertEqual(len(self.server.requests), asked)


class PlantedTest(StoresTest):
    def test_others_may_change_it(self):
        self.assertEqual(self.command().status, 0)
        self.store.chmod(0o666)
        self.refused("others can change")
        self.store.chmod(0o600)
        self.assertEqual(self.command().status, 0)

    def test_a_link(self):
        self.assertEqual(self.command().status, 0)
        self.store.rename(self.dir / "elsewhere")
        self.store.symlink_to(self.dir / "elsewhere")
        self.refused("symbolic link")

    def test_the_files_beside_it(self):
        """A journal that somebody else laid there would be played into the store."""
        self.assertEqual(self.command().status, 0)
        before = self.store.read_bytes()
        for end in SIDE_FILES:
            side = pathlib.Path(f"{self.store}{end}")
            victim = self.dir / f"victim{end}"
            victim.write_bytes(b"precious")
            side.symlink_to(victim)
            self.refused("symbolic link")
            side.unlink()
            side.write_bytes(b"")
            side.chmod(0o666)
            self.refused("others can change")
            side.unlink()
            self.assertEqual(victim.read_bytes(), b"precious")
        self.assertEqual(self.store.read_bytes(), before)
        self.assertEqual(self.command().status, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a file that is another user's")
    def test_a_strangers(self):
        """His row would name a file of ours as context."""
        self.write("secret", "precious")
        self.jobs({"custom_id": "job", "task": "task 0", "context_file": "secret"})
        self.assertEqual(self.rlmd("batch", "--submit", "--store", self.store,
                                   "jobs.jsonl").status, 0)
        os.chown(self.store, STRANGER, STRANGER)
        self.refused("belongs to another user")
        os.chown(self.store, 0, 0)
        for end in SIDE_FILES:
            side = pathlib.Path(f"{self.store}{end}")
            side.write_bytes(b"")
            os.chown(side, STRANGER, STRANGER)
            self.refused("belongs to another user")
            side.unlink()
        self.assertEqual(self.ask("work").status, 0)

    def test_a_directory_behind_a_link(self):
        """The directory may be reached by links: it is the file that counts."""
        (self.dir / "real").mkdir()
        (self.dir / "link").symlink_to("real")
        self.assertEqual(self.command("--store", "link/store").status, 0)
        self.assertTrue((self.dir / "real" / "store").is_file())


class MissingTest(StoresTest):
    def test_there_is_none(self):
        """A command that looks at a store makes none: a name that was mistyped is told."""
        for store in ("nofile", "sqlite:nofile", "nodir/nofile"):
            for command in ("status", "work", "results"):
                with self.subTest(command=command, store=store):
                    outcome = self.ask(command, store=store)
                    self.assertEqual(outcome.status, 8, outcome.err)
                    self.assertIn("there is no store", outcome.err)
                    self.assertIn("rlmd batch", outcome.err)
        (self.dir / "empty").write_bytes(b"")
        for command in ("status", "work", "results"):
            self.assertEqual(self.ask(command, store="empty").status, 8)
        self.assertEqual((self.dir / "empty").read_bytes(), b"")
        self.assertEqual([path.name for path in self.dir.iterdir() if "nofile" in path.name], [])
        self.assertEqual(self.ask("work", "--wait", store="nofile").status, 8)

    def test_there_is_no_libpq(self):
        """It is wanted by a store in PostgreSQL alone, which says what to install."""
        (self.dir / "libpq.so.5").write_bytes(b"")
        env = {"LD_LIBRARY_PATH": f"{self.dir}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        outcome = self.rlmd("status", "--store", "postgresql://nobody@127.0.0.1:1/none", env=env)
        self.assertEqual(outcome.status, 2, outcome.err)
        self.assertIn("libpq.so.5: file too short; install libpq5", outcome.err)
        outcome = self.rlmd("batch", "--submit", "--store", str(self.store), "jobs.jsonl", env=env)
        self.assertEqual(outcome.status, 0, outcome.err)


class SchemaTest(StoresTest):
    def test_what_no_store_has(self):
        self.assertEqual(self.command().status, 0)
        whole = self.store.read_bytes()
        for statements, name in (
                (["ALTER TABLE job RENAME TO jobs", "CREATE VIEW job AS SELECT * FROM jobs"], "job"),
                (["DROP TABLE batch", f"CREATE VIEW batch AS {ENDLESS}"], "batch"),
                (["CREATE TRIGGER more AFTER UPDATE ON job BEGIN DELETE FROM account; END"], "more"),
                (["CREATE VIEW mine AS SELECT 1"], "mine"),
                (["DROP INDEX job_due"], "job_due"),
                (["ALTER TABLE account DROP COLUMN spent_tokens"], "account")):
            self.store.write_bytes(whole)
            self.sql(*statements)
            self.refused(f"'{name}'")
        self.store.write_bytes(whole)
        self.assertEqual(self.command().status, 0)


class LockedTest(StoresTest):
    HELD, FREE = b"another process holds the store", b"the store is free again"

    def begin(self, *arguments):
        process = self.start(*arguments, preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL), env=self.environment(**self.server.environment()))
        self.addCleanup(process.kill)
        return process

    def expect(self, process, words):
        for line in process.stderr:
            if words in line:
                return
        self.fail(f"{words} was not told; it ended with {process.wait()}")

    def test_at_a_start(self):
        """It is waited for, and told."""
        self.assertEqual(self.command().status, 0)
        for how in ("BEGIN IMMEDIATE", "PRAGMA locking_mode = EXCLUSIVE"):
            for command in (["batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", "jobs.jsonl"],
                            ["work", "-p", "openai", "-m", "m", "--store", self.store],
                            ["results", "--store", self.store, "-o", "fetched.jsonl"],
                            ["status", "--store", self.store]):
                with self.subTest(command=command[0], how=how):
                    db = self.hold(how)
                    if "PRAGMA" in how:
                        db.execute("UPDATE batch SET name = name")
                    process = self.begin(*command)
                    self.expect(process, self.HELD)
                    db.close()
                    _, err = process.communicate()
                    self.assertIn(self.FREE, err)
                    self.assertEqual(process.returncode, 0, err)

    def test_interrupted(self):
        """One signal is enough where nothing is at work yet."""
        self.assertEqual(self.command().status, 0)
        self.hold()
        for command in (["batch", "-o", "results.jsonl", "-p", "openai", "-m", "m", "jobs.jsonl"],
                        ["status", "--store", self.store]):
            process = self.begin(*command)
            self.expect(process, self.HELD)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
            self.assertEqual(process.returncode, 130, err)

    def test_while_it_works(self):
        ready = []
        self.server.rules.clear()
        self.server.script(None, final("0", until=lambda: bool(ready)))
        process = self.command("-j", self.JOBS, begin=True)
        self.assertTrue(self.server.wait(lambda server: len(server.requests) == self.JOBS))
        db = self.hold()
        ready.append(True)
        self.expect(process, self.HELD)
        db.close()
        _, err = process.communicate()
        self.assertIn(self.FREE, err)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(self.results()), self.JOBS)
        self.assertEqual(len(self.server.requests), self.JOBS)


class DamageTest(StoresTest):
    """A row that is not as it was written is told, and comes into no file of results."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.command().status, 0)
        self.whole = self.store.read_bytes()
        self.good = {line for line in (self.dir / "results.jsonl").read_bytes().splitlines()}
        (self.dir / "results.jsonl").unlink()

    def told(self, *statements, words="job 1", commands=("batch", "results")):
        for command in commands:
            with self.subTest(command=command, statements=statements):
                self.store.write_bytes(self.whole)
                for name in ("results.jsonl", "fetched.jsonl"):
                    (self.dir / name).unlink(missing_ok=True)
                self.sql(*statements)
                outcome = self.command() if command == "batch" else self.ask(command)
                self.assertEqual(outcome.status, 8, outcome.err)
                self.assertIn("the store is damaged", outcome.err)
                self.assertIn(words, outcome.err)
                self.check_files()

    def check_files(self, whole=False):
        """No line that is none of ours; gives how many there are."""
        lines = []
        for name in ("results.jsonl", "fetched.jsonl"):
            with contextlib.suppress(FileNotFoundError):
                lines += (self.dir / name).read_bytes().splitlines()
        self.assertLessEqual(set(lines), self.good)
        return len(lines)

    def test_a_result_that_was_edited(self):
        of = " WHERE custom_id = 'job 1'"
        for value in (r"""'{"success":true,' || x'0a' || '"custom_id":"job 2"}'""",
                      """'{"success":true}' || x'0a' || '{"custom_id":"foreign","success":true}'""",
                      """'{"success":true}'""", "'{'", "''", "7",
                      """replace(result, 'true', 'TRUE')"""):
            self.told(f"UPDATE job SET result = CAST({value} AS blob)" + of)
        for change in ("error = 'x'", "cost = cost + 1", "tokens = 0", "state = 3", "tenant = 'x'",
                       "id = id + 100"):
            self.told(f"UPDATE job SET {change}" + of)
        self.told("UPDATE job SET digest = 'x'" + of, commands=["results"])
        self.told("UPDATE job SET custom_id = 'job x'" + of, words="job x", commands=["results"])

    def test_what_is_no_state(self):
        of = " WHERE custom_id = 'job 1'"
        for change in ("state = 'x'", "state = 7", "state = -1", "place = 0", "number = 'x'",
                       "not_before = 'x', state = 0, place = 0", "lease_until = 'x', state = 1, place = 0"):
            self.told(f"UPDATE job SET {change}" + of, commands=["batch", "status"])
        self.told("DELETE FROM job" + of, words="number of the batch's jobs",
                  commands=["batch", "results", "status"])
        self.told("UPDATE job SET batch = 7" + of, words="number of the batch's jobs",
                  commands=["results", "status"])

    def test_a_line_that_was_edited(self):
        self.told("UPDATE job SET state = 0, place = 0,"
                  " line = CAST(replace(CAST(line AS text), 'task', 'tusk') AS blob)"
                  " WHERE custom_id = 'job 1'", commands=["batch", "work"])

    def test_a_kept_answer_that_was_edited(self):
        """Its job is named, for it alone would pay again."""
        self.server.rules.clear()
        self.server.script(lambda request: request.turn == 0, code("print(1)"))
        self.server.script(None, Reply(until=lambda: False))
        self.jobs({"custom_id": "job 1", "task": "t"})
        for left in self.dir.glob("results.jsonl*"):
            left.unlink()
        asked = len(self.server.requests)
        process = self.command(begin=True)
        self.assertTrue(self.server.wait(lambda server: len(server.requests) > asked + 1))
        process.kill()
        process.communicate()
        self.sql("UPDATE exchange SET cost = cost + 1", "UPDATE job SET lease_until = 0")
        outcome = self.command()
        self.assertEqual(outcome.status, 8, outcome.err)
        self.assertIn("job 'job 1': the store is damaged: an answer that was kept", outcome.err)

    def test_bits(self):
        """Of each hundred bytes one bit turned: all is as it was, or it is told."""
        chance = random.Random(16)
        told = 0
        for place in range(100, len(self.whole), len(self.whole) // 60):
            damaged = bytearray(self.whole)
            damaged[place + chance.randrange(40)] ^= 1 << chance.randrange(8)
            self.store.write_bytes(damaged)
            (self.dir / "fetched.jsonl").unlink(missing_ok=True)
            outcome = self.ask("results")
            with self.subTest(place=place):
                self.assertIn(outcome.status, (0, 2, 8), outcome.err)
                lines = self.check_files()
                if outcome.status == 0:
                    self.assertEqual(lines, self.JOBS)
                told += outcome.status != 0
        self.assertGreater(told, 0)

    def test_cut_off(self):
        for size in range(0, len(self.whole), len(self.whole) // 12):
            self.store.write_bytes(self.whole[:size])
            (self.dir / "fetched.jsonl").unlink(missing_ok=True)
            outcome = self.ask("results")
            with self.subTest(size=size):
                self.assertIn(outcome.status, (0, 8), outcome.err)
                lines = self.check_files()
                self.assertIn(lines, [self.JOBS] if outcome.status == 0 else range(self.JOBS))


@unittest.skipIf(postgres.missing(), postgres.missing())
class RolesTest(StoresTest):
    """A database that others may use, too: none of theirs is believed, or run."""

    # Functions that run as whoever calls them, or whose tables it is on, and tells that it did.
    SPY = ("CREATE FUNCTION {}() RETURNS {} LANGUAGE plpgsql AS $$ BEGIN INSERT INTO"
           " mallory.seen VALUES (current_user); RETURN {}; END $$")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.postgres = postgres.PostgresServer().start()
        cls.addClassCleanup(cls.postgres.remove)
        cls.postgres.ask("CREATE ROLE mallory LOGIN; CREATE ROLE owner; CREATE ROLE ann LOGIN;"
                         " CREATE ROLE ben LOGIN; CREATE ROLE eve LOGIN; GRANT owner TO ann, ben;"
                         " GRANT CREATE ON DATABASE postgres TO mallory;"
                         " CREATE SCHEMA mallory AUTHORIZATION mallory;"
                         " CREATE TABLE mallory.seen (who text); GRANT ALL ON mallory.seen TO PUBLIC;"
                         " GRANT USAGE ON SCHEMA mallory TO PUBLIC")

    def setUp(self):
        super().setUp()
        self.postgres.ask("DROP SCHEMA IF EXISTS rlmd CASCADE")

    def url(self, role="rlmd"):
        return self.postgres.url.replace("rlmd@", f"{role}@")

    def submit(self, role="rlmd"):
        return self.rlmd("batch", "--submit", "--store", self.url(role), "jobs.jsonl")

    def made(self, role="rlmd"):
        outcome = self.submit(role)
        self.assertEqual(outcome.status, 0, outcome.err)

    def as_role(self, role, sql):
        self.postgres.ask(f"SET ROLE {role}; {sql}")

    def refused_to(self, role, *words):
        for outcome in (self.submit(role), self.ask("work", store=self.url(role)),
                        self.ask("status", store=self.url(role))):
            self.assertEqual(outcome.status, 2, outcome.err)
            for word in words:
                self.assertIn(word, outcome.err)
        self.assertEqual(self.postgres.ask("SELECT count(*) FROM mallory.seen"), "0")

    def test_another_roles_schema(self):
        """Of a superuser, who counts as a member of every role; and of one that she made a member."""
        self.as_role("mallory", "CREATE SCHEMA rlmd; CREATE TABLE rlmd.version (version bigint);"
                     + self.SPY.format("rlmd.store_now", "bigint", "1"))
        self.refused_to("rlmd", "schema rlmd", "mallory")
        self.refused_to("ann", "schema rlmd", "mallory")
        self.as_mallory("GRANT mallory TO rlmd, ann")
        self.refused_to("rlmd", "schema rlmd", "mallory")
        self.refused_to("ann", "schema rlmd", "mallory")
        self.postgres.ask("REVOKE mallory FROM rlmd, ann")

    def as_mallory(self, sql):
        """In a session of her own; from version 16 on she may not."""
        with contextlib.suppress(AssertionError):
            self.postgres.run("psql", "-XAtq", "-h", self.postgres.directory, "-U", "mallory",
                              "postgres", "-c", sql)

    def test_something_of_another_role_in_ours(self):
        self.made()
        self.postgres.ask("GRANT ALL ON SCHEMA rlmd TO mallory; GRANT ALL ON rlmd.job TO mallory")
        for make, drop, words in (
                (self.SPY.format("rlmd.count", "bigint", "1"), "FUNCTION rlmd.count", "count"),
                ("CREATE TABLE rlmd.more (x int)", "TABLE rlmd.more", "more"),
                ("CREATE VIEW rlmd.more AS SELECT 1", "VIEW rlmd.more", "more"),
                (self.SPY.format("mallory.spy", "trigger", "NEW") + "; CREATE TRIGGER spy BEFORE"
                 " UPDATE ON rlmd.job FOR EACH ROW EXECUTE FUNCTION mallory.spy()",
                 "FUNCTION mallory.spy CASCADE; CREATE TABLE IF NOT EXISTS x(); DROP TABLE x",
                 "spy")):
            with self.subTest(make=make):
                self.as_role("mallory", make)
                self.refused_to("rlmd", words)
                self.postgres.ask(f"DROP {drop}")
        self.assertEqual(self.ask("work", store=self.url()).status, 0)

    def test_a_view_in_the_place_of_a_table(self):
        self.made()
        self.postgres.ask("DROP TABLE rlmd.breaker; CREATE VIEW rlmd.breaker AS SELECT 1 AS batch")
        self.refused_to("rlmd", "breaker")

    def test_a_search_path(self):
        """Settings of the role, the database or the address are not followed."""
        self.as_role("mallory", "CREATE TABLE mallory.job (id bigint);"
                     + self.SPY.format("mallory.store_now", "bigint", "1"))
        self.postgres.ask("ALTER ROLE rlmd SET search_path = mallory, pg_catalog")
        self.made()
        url = self.url() + "&options=-csearch_path%3Dmallory"
        self.assertEqual(self.ask("work", store=url).status, 0)
        self.assertEqual(self.postgres.ask("SELECT count(*) FROM mallory.seen"), "0")
        self.postgres.ask("ALTER ROLE rlmd RESET search_path; DROP TABLE mallory.job;"
                          " DROP FUNCTION mallory.store_now")

    def test_several_roles(self):
        """Members of the owner's role may use and make it; nobody else."""
        self.postgres.ask("CREATE SCHEMA rlmd AUTHORIZATION owner")
        self.made("ann")
        outcome = self.ask("work", store=self.url("ben"))
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn(f"{self.JOBS} succeeded", outcome.err)
        self.assertEqual(self.postgres.ask("SELECT DISTINCT tableowner FROM pg_tables WHERE"
                                           " schemaname = 'rlmd'"), "owner")
        self.refused_to("eve", "schema rlmd", "owner")

    def test_there_is_none(self):
        for command in ("status", "work", "results"):
            outcome = self.ask(command, store=self.url())
            self.assertEqual(outcome.status, 8, outcome.err)
            self.assertIn("there is no store", outcome.err)
        self.assertEqual(self.postgres.ask("SELECT to_regnamespace('rlmd') IS NULL"), "t")


class TwoStartsTest(StoresTest):
    """The same command twice at once: one works, the other says who does."""

    JOBS, TIMES = 30, 4

    def race(self):
        """Both at once, and no answer before one of them has ended; gives loser and winner."""
        free = threading.Event()
        self.server.rules.clear()
        self.server.script(None, final("0", until=free.is_set))
        both = [self.command("-j2", begin=True) for _ in range(2)]
        ended = threading.Semaphore(0)
        for process in both:
            threading.Thread(target=lambda process=process: (process.wait(), ended.release()),
                             daemon=True).start()
        self.assertTrue(ended.acquire(timeout=patience.hung()))
        loser, winner = sorted(both, key=lambda process: process.poll() is None)
        free.set()
        return loser, winner

    def test_the_loser_says_who_works(self):
        for i in range(self.TIMES):
            for path in self.dir.glob("results.jsonl*"):
                path.unlink()
            loser, winner = self.race()
            _, lost = loser.communicate()
            _, won = winner.communicate()
            with self.subTest(i=i):
                self.assertEqual((loser.returncode, winner.returncode), (2, 0), lost + won)
                self.assertIn(f"process {winner.pid}".encode(), lost)
                self.assertEqual(len(self.results()), self.JOBS)
            self.assertEqual(self.command().status, 0)


class RootTest(StoresTest):
    def test_contexts_are_below_it(self):
        """Of jobs without a tenant, and of one that no rlmd.conf knows; whatever links say."""
        self.server.rules.clear()
        self.server.script(None, lambda request: code("FINAL(context)"))
        self.write("root/in.txt", "inside")
        self.write("secret", "precious")
        (self.dir / "root" / "link").symlink_to("../secret")
        contexts = {"in": {"context_file": "root/in.txt"}, "dir": {"context_dir": "root/.."},
                    "out": {"context_file": "secret"}, "up": {"context_file": "root/../secret"},
                    "link": {"context_file": "root/link"},
                    "other": {"context_file": "secret", "tenant": "acme"}}
        self.jobs(*({"custom_id": id, "task": "t", **more} for id, more in contexts.items()))
        submitted = self.rlmd("batch", "--submit", "--store", self.store, "jobs.jsonl")
        self.assertEqual(submitted.status, 0, submitted.err)
        outcome = self.ask("work", "--root", "root", "--allow-outside")
        self.assertEqual(outcome.status, 2, outcome.err)
        outcome = self.ask("work", "--root", "root", "--require", "L1")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertIn("6 jobs: 1 succeeded, 5 failed", outcome.err)
        self.assertEqual(self.ask("results").status, 3)
        lines = (self.dir / "fetched.jsonl").read_text("utf-8").splitlines()
        results = {each["custom_id"]: each for each in map(json.loads, lines)}
        self.assertEqual(results.pop("in")["output"], "inside")
        for id, each in results.items():
            self.assertIn("may be about files in", each["error"]["message"], id)
