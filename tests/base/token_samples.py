"""Writes the texts whose tokens tests/base/token_counts.tsv has: python3 token_samples.py DIRECTORY

Two of each kind, KIND.1 and KIND.2: what is learned from the one must hold for the other. What a
machine would have written is generated, the same on every machine; the rest stands in the files of
tests/base/tokens, one a kind, its two texts parted by a line of "====".
"""

import base64
import json
import pathlib
import sys

TEXTS = pathlib.Path(__file__).parent / "tokens"
WORDS = """alpha market request order server network invoice total payment customer house street
river window garden letter number system report answer change second minute yellow green silver
copper morning evening winter summer yesterday transfer account balance history storage connection
timeout failed accepted refused closed opened started finished delivery warehouse quantity""".split()
NAMES = "Anna Ben Carla David Elena Farid Greta Hiro Ines Jonas Katya Liam Mei Noor Oskar Priya".split()
HOSTS = "web-1 web-2 db-main cache07 gateway worker-12 build.example.org mail".split()
PATHS = """/api/v1/orders /index.html /static/app.min.js /images/logo.png /api/v2/users/login
/search?q=blue+shoes&page=3 /healthz /docs/install/linux.html /cart/checkout""".split()


class Dice:
    """Numbers that look random and are the same in every version of Python."""

    def __init__(self, seed):
        self.state = seed * 2654435761 % 2**64 + 1

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def of(self, rows):
        return rows[self.below(len(rows))]

    def bytes(self, count):
        return bytes(self.below(256) for _ in range(count))

    def words(self, low, high):
        return " ".join(self.of(WORDS) for _ in range(self.between(low, high)))

    def time(self, form):
        return form.format(y=2020 + self.below(6), m=self.between(1, 12), d=self.between(1, 28),
                           H=self.below(24), M=self.below(60), S=self.below(60), f=self.below(1000))

    def uuid(self):
        text = self.bytes(16).hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def address(self):
        return ".".join(str(self.between(1, 254)) for _ in range(4))


KINDS = {}


def kind(lines):
    """A kind of text, of so many lines that the function makes one by one."""
    def note(function):
        KINDS[function.__name__.replace("_", "-")] = lambda dice: "".join(
            function(dice, i) for i in range(lines))
        return function
    return note


@kind(16)
def log_syslog(dice, _):
    return dice.time("Mar {d:2} {H:02}:{M:02}:{S:02} ") + (
        f"{dice.of(HOSTS)} {dice.of(['sshd', 'cron', 'kernel', 'nginx'])}[{dice.between(300, 32000)}]: "
        f"{dice.words(3, 9)} from {dice.address()} port {dice.between(1024, 65000)}\n")


@kind(14)
def log_access(dice, _):
    when = dice.time("[{d:02}/Oct/{y}:{H:02}:{M:02}:{S:02} +0000]")
    return (f'{dice.address()} - - {when} "{dice.of(["GET", "POST"])} {dice.of(PATHS)} HTTP/1.1" '
            f'{dice.of([200, 200, 304, 404, 500])} {dice.between(80, 90000)} "-" "Mozilla/5.0 (X11; '
            f'Linux x86_64; rv:{dice.between(60, 128)}.0) Gecko/20100101"\n')


@kind(10)
def log_json(dice, _):
    return json.dumps({"ts": dice.time("{y}-{m:02}-{d:02}T{H:02}:{M:02}:{S:02}.{f:03}Z"),
                       "level": dice.of(["info", "warn", "error"]), "msg": dice.words(2, 6),
                       "request_id": dice.uuid(), "duration_ms": dice.below(3000),
                       "user": {"id": dice.below(100000), "name": dice.of(NAMES)}},
                      separators=(",", ":")) + "\n"


@kind(18)
def log_application(dice, _):
    return dice.time("{y}-{m:02}-{d:02} {H:02}:{M:02}:{S:02},{f:03} ") + (
        f"{dice.of(['INFO ', 'DEBUG', 'ERROR'])} [worker-{dice.below(16)}] "
        f"com.example.shop.{dice.of(['OrderService', 'PaymentGateway', 'UserCache'])} - "
        f"{dice.words(3, 8)} id={dice.between(1000, 999999)}\n")


@kind(30)
def csv_sales(dice, i):
    return (f"{10000 + i},{dice.time('{y}-{m:02}-{d:02}')},{dice.of(NAMES)},{dice.of(WORDS)},"
            f"{dice.between(1, 20)},{dice.between(1, 999)}.{dice.below(100):02}\n")


@kind(36)
def csv_numbers(dice, i):
    return f"{i}," + ",".join(f"{dice.below(2000) / 100 - 5:.3f}" for _ in range(6)) + "\n"


@kind(12)
def json_dense(dice, i):
    return json.dumps([{"id": i, "n": dice.of(NAMES), "v": [dice.below(1000) for _ in range(5)],
                        "ok": dice.below(2) == 1, "t": dice.of(WORDS)}], separators=(",", ":"))


@kind(4)
def json_pretty(dice, i):
    return json.dumps({"order": i, "customer": {"name": dice.of(NAMES), "city": dice.of(WORDS)},
                       "items": [{"title": dice.words(1, 3), "count": dice.below(9), "price": 12.5}
                                 for _ in range(2)]}, indent=2) + "\n"


@kind(20)
def hex_dump(dice, i):
    data = dice.bytes(16)
    return f"{i * 16:08x}  " + " ".join(f"{byte:02x}" for byte in data) + "\n"


@kind(20)
def hex_digests(dice, i):
    return f"{dice.bytes(32).hex()}  {dice.of(WORDS)}.txt\n"


@kind(20)
def base64_lines(dice, _):
    return base64.b64encode(dice.bytes(54)).decode() + "\n"


@kind(30)
def uuids(dice, _):
    return dice.uuid() + "\n"


@kind(12)
def stack_trace(dice, i):
    return (f'  File "/usr/lib/python3/{dice.of(WORDS)}/{dice.of(WORDS)}.py", line '
            f"{dice.between(3, 900)}, in {dice.of(WORDS)}_{dice.of(WORDS)}\n"
            f"    {dice.of(WORDS)} = self.{dice.of(WORDS)}({dice.of(WORDS)}, {dice.of(WORDS)}=None)\n")


@kind(12)
def stack_java(dice, i):
    return (f"\tat org.example.{dice.of(WORDS)}.{dice.of(WORDS).title()}{dice.of(WORDS).title()}."
            f"{dice.of(WORDS)}{dice.of(WORDS).title()}({dice.of(WORDS).title()}.java:"
            f"{dice.between(10, 900)})\n")


@kind(60)
def numbers_long(dice, _):
    return f"{dice.between(10**11, 10**13)}\n"


@kind(18)
def urls(dice, _):
    return (f"https://www.{dice.of(WORDS)}-{dice.of(WORDS)}.com/{dice.of(WORDS)}/{dice.of(WORDS)}?"
            f"id={dice.below(100000)}&utm_source={dice.of(WORDS)}\n")


@kind(16)
def table_wide(dice, i):
    return f"{dice.of(NAMES):<24}{dice.of(WORDS):<20}{dice.below(100000):>14}{dice.below(100):>10}\n"


@kind(14)
def table_markdown(dice, i):
    return f"| {dice.of(NAMES):<10} | {dice.of(WORDS):<12} | {dice.below(10000):>8} | {dice.words(1, 4)} |\n"


@kind(22)
def listing_files(dice, _):
    return (f"-rw-r--r--  1 root  staff  {dice.below(1000000):>8} Jan {dice.between(1, 28):>2} "
            f"{dice.below(24):02}:{dice.below(60):02} {dice.of(WORDS)}_{dice.of(WORDS)}.{dice.of(['txt', 'c', 'log'])}\n")


@kind(12)
def emoji(dice, _):
    faces = "😀 😂 🎉 🚀 ❤️ 👍🏽 🔥 ✅ 🤔 🙏 🌍 👩‍💻 🇩🇪 ⚠️ 💡".split()
    return f"{dice.words(2, 5)} {dice.of(faces)}{dice.of(faces)} {dice.of(NAMES)}: {dice.words(1, 3)} {dice.of(faces)}\n"


def written():
    for path in sorted(TEXTS.glob("*.txt")):
        first, second = path.read_text(encoding="utf-8").split("\n====\n")
        yield path.stem, first + "\n", second


def samples():
    for name, make in KINDS.items():
        yield name, make(Dice(len(name))), make(Dice(1000 + len(name)))
    yield from written()


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, *texts in samples():
        for number, text in enumerate(texts, 1):
            (directory / f"{name}.{number}").write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
