"""Tasks with answers that can be checked, made from a seed.

A task is a question, the files that it is about, and what the right answer is. The same name, size
and seed make the same task on every machine and under every Python: only random.Random.random()
is used, whose sequence is promised to stay.
"""

import random
import re

SIZES = {"small": 4_000, "medium": 60_000, "large": 600_000}  # characters of all files together
STRAY = 2     # numbers that an answer may name beside the right one and those of the question

PLACES = ("Aarhus", "Brest", "Cork", "Dresden", "Eindhoven", "Faro", "Gdansk", "Haifa", "Izmir",
          "Jena", "Kosice", "Lviv", "Malaga", "Narvik", "Ostrava", "Porto", "Quimper", "Riga",
          "Split", "Turku")
PEOPLE = ("Ada", "Bela", "Carl", "Dora", "Emil", "Flora", "Gero", "Hanna", "Ivo", "Jana", "Karl",
          "Lena", "Milo", "Nora", "Otto", "Paula")
SERVICES = ("auth", "billing", "cache", "gateway", "mailer", "search", "storage", "web")


class Dice(random.Random):
    """Choices that rest on random() alone."""

    def below(self, bound):
        return int(self.random() * bound)

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def pick(self, items):
        return items[self.below(len(items))]

    def mixed(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


class Task:
    """What is asked, about what (`files`: path to text), and what is right.

    `answer` is an int, or a str of which `rivals` are the wrong alternatives.
    """

    def __init__(self, name, question, files, answer, rivals=()):
        self.name, self.question, self.files = name, question, files
        self.answer, self.rivals = answer, tuple(rivals)

    def right(self, said):
        """Whether an answer says it, in whatever words stand around it."""
        if isinstance(self.answer, int):
            return self._number(said)
        return self._identifier(said)

    def _number(self, said):
        """The number is named, and hardly any other: a list of guesses is no answer."""
        asked = set(_numbers(self.question))
        named = set(_numbers(said))
        return self.answer in named and len(named - asked - {self.answer}) <= STRAY

    def _identifier(self, said):
        """It is the first of the alternatives that is named."""
        mine = _place(self.answer, said)
        theirs = [_place(rival, said) for rival in self.rivals]
        return mine is not None and all(other is None or mine < other for other in theirs)


def _numbers(text):
    """Whole numbers, 1,234 and 1234.0 too; digits within a word, a date or a fraction are none."""
    found = re.findall(r"(?<![\w.,:/-])-?\d{1,3}(?:[,_]\d{3})+(?:\.0+)?(?!\w|[-./:]\d)"
                       r"|(?<![\w.:/-])-?\d+(?:\.0+)?(?!\w|[-./:]\d)", text)
    return [int(re.sub(r"\.0+$|[,_]", "", each)) for each in found]


def _place(name, text):
    """Where a name stands as a whole word, case aside; a path also by its last part."""
    for form in (name, name.rsplit("/", 1)[-1]):
        found = re.search(rf"(?<![\w.-]){re.escape(form)}(?![\w-])", text.replace("`", " "),
                          re.IGNORECASE)
        if found:
            return found.start()
    return None


def _filled(size, line):
    """As many of the lines line(0), line(1), ... as fit into `size` characters; at least 12."""
    lines, left = [], size
    while left > 0 or len(lines) < 12:
        lines.append(line(len(lines)))
        left -= len(lines[-1]) + 1
    return lines


def _text(lines):
    return "\n".join(lines) + "\n"


def needle(dice, size):
    """One sentence of a long text says it; others look like it."""
    codes = {}

    def line(_):
        return (f"{dice.pick(PEOPLE)} went to {dice.pick(PLACES)} on day {dice.between(1, 300)} "
                f"and came back with {dice.between(2, 90)} {dice.pick(('boxes', 'letters'))}.")

    lines = _filled(size, line)
    places = dice.mixed(PLACES)[:5]
    for place in places:
        codes[place] = f"{dice.pick('BDFGHJ')}{dice.pick('KLMNPQ')}-{dice.between(1000, 9999)}"
        lines.insert(dice.below(len(lines)), f"The access code of the depot in {place} is "
                                             f"{codes[place]}.")
    rivals = [codes[place] for place in places[1:] if codes[place] != codes[places[0]]]
    return Task("needle", f"What is the access code of the depot in {places[0]}?",
                {"diary.txt": _text(lines)}, codes[places[0]], rivals)


def count(dice, size):
    """Lines of a log with one status; the same number stands elsewhere in them as well."""
    status = dice.pick((404, 500, 503))
    right = 0

    def line(number):
        nonlocal right
        this = dice.pick((200, 200, 200, 200, 204, 404, 500, 503))
        right += this == status
        return (f"2026-03-{1 + number % 28:02d} {dice.pick(SERVICES)} status={this} "
                f"bytes={dice.pick((status, dice.between(100, 9999)))}")

    lines = _filled(size, line)
    return Task("count", f"How many requests of this log have the status {status}?",
                {"requests.log": _text(lines)}, right)


def join(dice, size):
    """A sum over one table, of rows that another table chooses."""
    customers = max(6, size // 400)
    homes = [dice.pick(PLACES[:6]) for _ in range(customers)]
    place = homes[dice.below(customers)]
    total = 0

    def line(number):
        nonlocal total
        who, amount = dice.below(customers), dice.between(5, 400)
        total += amount if homes[who] == place else 0
        return f"{number + 1},C{who + 1:04d},{amount}"

    table = [f"C{i + 1:04d},{dice.pick(PEOPLE)},{home}" for i, home in enumerate(homes)]
    orders = _filled(size - len(_text(table)), line)
    return Task("join", f"What is the total amount of all orders of customers from {place}?",
                {"customers.csv": _text(["customer,name,city", *table]),
                 "orders.csv": _text(["order,customer,amount", *orders])}, total)


def largest(dice, size):
    """The name beside the largest of many numbers; as strings they sort otherwise."""
    values = []

    def line(number):
        value = dice.pick((dice.between(80, 99), dice.between(100, 980), dice.between(1000, 9800)))
        values.append(value)
        return f"disk-{number + 1:04d}: {value} MB used by {dice.pick(SERVICES)}"

    lines = _filled(size, line)
    winner = dice.below(len(lines))
    lines[winner] = re.sub(r": \d+ ", f": {dice.between(9900, 9999)} ", lines[winner])
    names = [line.partition(":")[0] for line in lines]
    return Task("largest", "Which disk has the most MB used?", {"disks.txt": _text(lines)},
                names[winner], names[:winner] + names[winner + 1:])


def defines(dice, size):
    """The one file of a source tree that defines a function which many call."""
    verbs, nouns = ("load", "merge", "parse", "send", "split"), ("index", "label", "order", "page")
    names = dice.mixed([f"{verb}_{noun}" for verb in verbs for noun in nouns])
    number = max(4, min(len(names), size // 500))
    paths = [f"{dice.pick(('core', 'net', 'tools'))}/{name.split('_')[1]}_{i + 1}.py"
             for i, name in enumerate(names[:number])]
    target = dice.below(number)
    files = {}
    for i, path in enumerate(paths):
        body = _filled(size // number - 120, lambda j: (
            f"    {dice.pick(('left', 'right', 'total'))} = {names[dice.below(number)]}"
            f"({dice.between(0, 99)})"))
        call = f"    total = {names[target]}({i})"
        files[path] = _text([f"# {path}: everything about {names[i].replace('_', ' ')}s.", "",
                             f"def {names[i]}(number):", *body, call, "    return total"])
    return Task("defines", f"Which file defines the function {names[target]}?", files,
                paths[target], paths[:target] + paths[target + 1:])


def classify(dice, size):
    """What has the most complaints, where no word says "complaint"."""
    bad = ("it broke after {} days", "I waited {} weeks for it and it came in pieces",
           "it stopped working, and {} mails got me no reply", "I sent it back, I want my {} back",
           "the worst {} euros I have ever spent")
    good = ("it has run for {} weeks and we love it", "we bought {} more for our friends",
            "it came {} days early and works like a charm", "I'd pay {} more for it any time",
            "after {} months it is as good as new")
    things = dice.mixed(("kettle", "lamp", "radio", "drill", "tent"))
    worst = things[0]

    def line(number):
        thing = dice.pick(things)
        unhappy = dice.random() < (0.9 if thing == worst else 0.12)
        words = dice.pick(bad if unhappy else good).format(dice.between(2, 40))
        return f"[{number + 1}] About the {thing}: {words}."

    # Every thing is in as many of them, so that the one with the most mentions is not the answer.
    lines = _filled(size, line)
    lines += [f"[{len(lines) + i + 1}] About the {things[1 + i % 4]}: we bought {i + 2} more."
              for i in range(len(lines) // 4)]
    return Task("classify", "About which product are most customers unhappy?",
                {"reviews.txt": _text(lines)}, worst, things[1:])


def tally(dice, size):
    """How many say so, in words of their own: each is to be understood, and all counted."""
    late = ("the parcel took {} days longer than promised", "I waited {} weeks for it",
            "it was due on the {}th and came the week after")
    other = ("the box was torn, and {} screws were missing", "it hums at {} hertz",
             "it came {} days early", "we bought {} more", "the manual has {} pages of nonsense")
    right = 0

    def line(number):
        nonlocal right
        is_late = dice.random() < 0.3
        right += is_late
        words = dice.pick(late if is_late else other).format(dice.between(2, 28))
        return f"[{number + 1}] {dice.pick(PEOPLE)} writes: {words}."

    lines = _filled(size, line)
    return Task("tally", "How many of these letters say that a delivery came late?",
                {"letters.txt": _text(lines)}, right)


def chain(dice, size):
    """Each sentence leads to the next one, over four of them."""
    people, places = dice.mixed(PEOPLE), dice.mixed(PLACES)
    codes = [f"{dice.pick('BDFGHJ')}{dice.pick('KLMNPQ')}-{dice.between(1000, 9999)}"
             for _ in places]
    said = {}

    def line(_):
        return (f"{dice.pick(PEOPLE)} wrote to {dice.pick(PEOPLE)} about the {dice.pick(SERVICES)} "
                f"of {dice.pick(PLACES)}, page {dice.between(1, 300)}.")

    lines = _filled(size - 2200, line)  # which the sentences below take
    for i, person in enumerate(people):
        said[person] = people[(i + 5) % len(people)]
        lines.insert(dice.below(len(lines)),
                     f"{person} has handed the depot over to {said[person]}.")
        lines.insert(dice.below(len(lines)), f"The depot that {person} runs is in {places[i]}.")
    for place, code in zip(places, codes):
        lines.insert(dice.below(len(lines)), f"The access code in {place} is {code}.")
    first = people[0]
    right = codes[people.index(said[said[first]])]
    rivals = [code for code in codes if code != right]
    return Task("chain", f"{first} has handed a depot over to somebody, who has handed it over to "
                         f"somebody else, who runs it now. What is the access code of that depot?",
                {"notes.txt": _text(lines)}, right, rivals)


def callers(dice, size):
    """How many files of a source tree call a function, which all of them mention."""
    number = max(6, size // 600)
    name = dice.pick(("open_valve", "read_gauge", "close_gate"))
    right, files = 0, {}
    for i in range(number):
        body = _filled(size // number - 150, lambda j: (
            f"    {dice.pick(('left', 'right', 'total'))} = "
            f"{dice.pick(SERVICES)}_{dice.between(1, 40)}({dice.between(0, 99)})"))
        calls = dice.random() < 0.4 or i == 0
        right += calls
        use = f"    total = {name}({i})" if calls else f"    # {name}() is called elsewhere"
        body.insert(dice.below(len(body)), use)
        files[f"{dice.pick(('core', 'net', 'tools'))}/part_{i + 1:04d}.py"] = _text([
            f'"""Part {i + 1}; see {name}() for the rest."""', "", f"def part_{i + 1}(number):",
            *body, "    return total"])
    return Task("callers", f"How many of these files call the function {name}?", files, right)


def aggregate(dice, size):
    """A sum over many documents, each of which says its share in other words."""
    says = ("The site {} was down for {} minutes.", "At {} the outage lasted {} minutes.",
            "{} could not be reached for {} minutes.", "In {} the lights were off {} minutes.")
    number = max(5, size // 700)
    sites = PLACES[:4]
    site, total, files = dice.pick(sites), 0, {}
    for i in range(number):
        here, minutes = site if i < 2 else dice.pick(sites), dice.between(3, 90)
        total += minutes if here == site else 0
        padding = _filled(size // number - 160, lambda _: (
            f"{dice.pick(PEOPLE)} checked the {dice.pick(SERVICES)} service and wrote it down."))
        middle = dice.below(len(padding))
        files[f"reports/{i + 1:04d}.txt"] = _text([
            f"Report {i + 1}", *padding[:middle], dice.pick(says).format(here, minutes),
            *padding[middle:]])
    names = dice.mixed(files)
    files = {f"reports/{i + 1:04d}.txt": files[name] for i, name in enumerate(names)}
    return Task("aggregate", f"How many minutes was {site} down, over all reports together?",
                files, total)


KINDS = {each.__name__: each for each in
         (needle, count, join, largest, defines, classify, aggregate, tally, chain, callers)}


def make(name, size, seed, run):
    """The task of that kind for run `run` (from 0) of a seed; `size` in characters."""
    return KINDS[name](Dice(f"{seed}/{name}/{run}"), size)


def size_of(text):
    """A size as it is given: small, medium, large, or characters as in 20k; ValueError else."""
    if text in SIZES:
        return SIZES[text]
    found = re.fullmatch(r"(\d+)([kM]?)", text)
    if not found or int(found[1]) == 0:
        raise ValueError(f"{text!r} is no size: small, medium, large, or characters (20k, 2M)")
    return int(found[1]) * {"": 1, "k": 1_000, "M": 1_000_000}[found[2]]
