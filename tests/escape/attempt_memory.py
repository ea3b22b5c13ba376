"""G8: memory, threads and descriptors end where they should, and the run goes on."""

from attempts import Group

GROUP = Group("memory", "--worker-memory", "128M", "--block-timeout", "30s")
LIMIT = 128 << 20
ADDRESSES = 2 * LIMIT + (1 << 30)

GROUP.each(
    "MemoryError died RuntimeError",
    one_bytearray="bytearray(1 << 30)",
    growing_list="held = []\nwhile True: held.append(bytearray(1 << 20))",
    many_small_strings="held = []\nfor i in range(1 << 30): held.append(str(i) * 8)",
    doubling_string="text = 'x' * 1000\nwhile True: text += text",
    doubling_list="items = [0]\nwhile True: items += items",
    nested_dictionaries="held = {}\nwhile True: held = {i: held for i in range(1000)}",
    unpacking="import zlib\npacker = zlib.compressobj()\npacked = b''.join(packer.compress(bytes(1 << 20)) for _ in range(150)) + packer.flush()\nzlib.decompress(packed)",
    shifted_integer="1 << (1 << 34)",
    formatted="'%*d' % (1 << 30, 1)",
    generator_of_threads_memory="""
held = [[] for _ in range(8)]
started = threading.Barrier(9)  # start() waits for ever for a thread that has no memory to say so
def grow(mine):
    started.wait()
    while True:
        mine.append(bytearray(1 << 20))
threads = [threading.Thread(target=grow, args=(mine,), daemon=True) for mine in held]
for thread in threads:
    thread.start()
started.wait()
for thread in threads:
    thread.join()
bytearray(1 << 30)
""",
)

# Where its memory ends within the compiler of patterns, CPython 3.11 forgets to say MemoryError.
GROUP.add("repeated_pattern", "MemoryError died SystemError",
          "import re\nre.compile('(?:' + 'a?' * (1 << 24) + ')')")

GROUP.each(
    "ENOMEM EAGAIN",
    raw_mappings="fill(1 << 20)",
    mapping_without_reserve="fill(1 << 24, 3, PRIVATE | ANONYMOUS | 0x4000)",
    addresses_only="fill(1 << 26, 0, PRIVATE | ANONYMOUS | 0x4000)",
    growing_a_mapping="""
page = call("mmap", 0, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
size = PAGE
try:
    while True:
        page = call("mremap", page, size, 2 * size, 1)
        size *= 2
finally:
    call("munmap", page, size)
""",
)

GROUP.add("memory_made_read_only", "held died", f"""
# Memory that cannot be written is not counted as data, though it is there: the addresses bound it,
# or whoever looks on.
pieces, error = [], None
try:
    for taken in range(0, 64 << 30, 1 << 23):
        piece = call("mmap", 0, 1 << 23, 3, PRIVATE | ANONYMOUS, -1, 0)
        pieces.append(piece)
        ctypes.memset(piece, 1, 1 << 23)
        call("mprotect", piece, 1 << 23, 1)
except OSError as failure:
    error = failure
for piece in pieces:
    call("munmap", piece, 1 << 23)
check(error and error.errno == errno.ENOMEM and taken <= {ADDRESSES}, (error, taken))
""")

GROUP.add("memory_of_malloc", "held died", f"""
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
taken, pieces = 0, []
while taken < 1 << 34:
    piece = libc.malloc(1 << 20)
    if not piece:
        break
    pieces.append(piece)
    libc.memset(piece, 1, 1 << 20)
    taken += 1 << 20
for piece in pieces:
    libc.free(ctypes.c_void_p(piece))
check(taken <= {LIMIT}, taken)
""")

GROUP.add("catching_every_memory_error", "held", """
held, refused = [], 0
while refused < 200:
    try:
        held.append(bytearray(1 << 22))
    except MemoryError:
        refused += 1
        if refused % 50 == 0:
            held.clear()
held.clear()
check(refused == 200, refused)
""")

GROUP.add("recursion", "RecursionError MemoryError SystemError", "def f(n): return f(n + 1)\nf(0)")
GROUP.each(
    "died MemoryError RecursionError SystemError",
    recursion_without_a_limit="sys.setrecursionlimit(1 << 30)\ndef f(n): return f(n + 1)\nf(0)",
    recursion_in_c="""
sys.setrecursionlimit(1 << 30)
deep = []
for _ in range(1 << 18):
    deep = [deep]
repr(deep)
""",
    recursion_in_the_compiler="sys.setrecursionlimit(1 << 30)\ncompile('-' * 10000000 + '1', 'x', 'eval')",
)
GROUP.add("recursion_in_the_parser", "MemoryError SyntaxError RecursionError died", "compile('-' * 3000000 + '1', 'x', 'eval')")
GROUP.add("deep_json", "RecursionError died", "json.loads('[' * 1000000)")
GROUP.add("big_digits", "ValueError time died returned", "len(str(10 ** 200000))")

GROUP.add("threads", "held died time", """
stop, threads = threading.Event(), []
try:
    while len(threads) < 5000:
        threads.append(threading.Thread(target=stop.wait, daemon=True))
        threads[-1].start()
except (RuntimeError, MemoryError):
    threads.pop()
stop.set()
for thread in threads:
    thread.join()
check(0 < len(threads) < 5000, len(threads))
""")

GROUP.add("threads_without_python", "held died", """
# Bare threads on stacks of a page, which the limit on addresses does not count.
import _thread
threading.stack_size(32768)
stop, count, before = threading.Event(), 0, _thread._count()
try:
    while count < 20000:
        _thread.start_new_thread(stop.wait, ())
        count += 1
except (RuntimeError, MemoryError):
    pass
stop.set()
while _thread._count() > before:  # what comes next needs threads of its own
    time.sleep(0.01)
threading.stack_size(1 << 20)
check(count < 20000, f"{count} threads")
""")

GROUP.add("memory_behind_a_dead_thread", "died time RuntimeError", """
# The kernel tells the memory of a process by its first thread; another one goes on and takes more.
def hoard():
    taken = []
    while True:
        piece = call("mmap", 0, 1 << 24, 3, PRIVATE | ANONYMOUS, -1, 0)
        ctypes.memset(piece, 1, 1 << 24)
        call("mprotect", piece, 1 << 24, 1)
        time.sleep(0.05)
threading.Thread(target=hoard).start()
time.sleep(0.01)
call("exit", 0)
""")

GROUP.add("descriptors", "held", """
import fcntl
def many(make):
    made = []
    try:
        while len(made) < 5000:
            made.append(make())
    except OSError as error:
        count = sum(2 if isinstance(each, tuple) else 1 for each in made)
        return f"{count} {error.errno == errno.EMFILE}"
    finally:
        for each in made:
            for part in each if isinstance(each, tuple) else (each,):
                os.close(part) if isinstance(part, int) else part.close()
counts = {
    "duplicates": many(lambda: fcntl.fcntl(READ, fcntl.F_DUPFD_CLOEXEC, 0)),
    "selectors": many(select.epoll),
    "pairs": many(socket.socketpair),
}
bounded = [text and text.endswith("True") and int(text.split()[0]) <= 64 for text in counts.values()]
check(all(bounded), counts)
""")

GROUP.add("buffers_of_sockets", "held", """
pairs, sent = [], 0
try:
    while True:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
        try:
            while True:
                sent += pairs[-1][0].send(bytes(1 << 16))
        except BlockingIOError:
            pass
except OSError as error:
    check(error.errno == errno.EMFILE and sent < 64 << 20, (error, sent))
""")

GROUP.add("selectors_in_selectors", "held", """
inner = outer = select.epoll()
made = [inner]
try:
    for _ in range(30):
        outer = select.epoll()
        outer.register(made[-1].fileno())
        made.append(outer)
except OSError as error:
    check(error.errno in (errno.EINVAL, errno.ELOOP, errno.EMFILE), error)
else:
    print("held")
""")
