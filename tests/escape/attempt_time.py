"""G8: whatever a block does with its time, it ends, and the run goes on."""

from attempts import Group

GROUP = Group("time", "--block-timeout", "300ms", "--max-output", "2000", "--worker-memory", "256M")

GROUP.each(
    "time",
    loop="while True: pass",
    sleep="time.sleep(3600)",
    arithmetic="10 ** 10 ** 10",
    loop_in_c="sum(range(10 ** 14))",
    regular_expression="re.match('(a+)+$', 'a' * 60 + 'b')",
    wait_for_a_lock="lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    wait_for_a_futex="call('futex', ctypes.create_string_buffer(8), 0, 0, 0, 0, 0)",
    wait_for_nothing="select.select([], [], [])",
    catching_everything="""
while True:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
""",
    ignoring_the_interrupt="libc.signal(signal.SIGINT, 1)\nwhile True: pass",
    blocking_all_signals="signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
    spinning_in_many_threads="""
def spin():
    while True: pass
threads = [threading.Thread(target=spin, daemon=True) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""",
    storm_of_alarms="""
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
""",
    interrupt_taken_by_a_handler="""
signal.signal(signal.SIGINT, lambda *_: None)
libc.sigaction(signal.SIGINT, bytes(256), None)
libc.signal(signal.SIGINT, 1)
time.sleep(3600)
""",
    garbage_that_comes_back="""
class Phoenix:
    def __del__(self):
        Phoenix().self = self
        while True: pass
Phoenix()
while True: pass
""",
    flood_of_output="while True: print('x' * 1000)",
    flood_of_errors="while True: print('x' * 1000, file=sys.stderr)",
    flood_past_python="while True: os.write(1, b'x' * 65536); os.write(2, b'x' * 65536)",
    destructors_without_end="""
class Hydra:
    def __del__(self):
        heads.append(Hydra())
        heads.append(Hydra())
heads = [Hydra()]
while True:
    heads.pop()
    del heads[10:]
""",
    no_answer_to_a_loop_of_yields="while True: call('sched_yield')",
    sort_without_end="""
class Odd:
    def __lt__(self, other):
        time.sleep(0.001)
        return True
sorted(Odd() for _ in range(1 << 20))
""",
    taking_the_supervisors_words="os.read(READ, 1 << 16); os.read(READ, 1 << 16); time.sleep(3600)",
)

GROUP.add("death_by_alarm", "died time", "signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(signal.ITIMER_REAL, 1e-6)\nwhile True: pass")
GROUP.add("exit_that_hangs", "returned", "import atexit\natexit.register(time.sleep, 3600)\nsys.exit()")
GROUP.add("interrupt_in_a_finally", "time", """
try:
    while True: pass
finally:
    while True: pass
""")
GROUP.add("threads_that_live_on", "returned", """
def spin():
    while True: time.sleep(0.001)
for _ in range(4):
    threading.Thread(target=spin).start()
""")
GROUP.add("after_threads_that_live_on", "held", "check(threading.active_count() == 5, threading.active_count())")
GROUP.add("hooks_for_the_end", "returned", """
import atexit, gc
class Last:
    def __del__(self):
        while True: pass
atexit.register(lambda: time.sleep(3600))
sys.last = Last()
sys.exitfunc = sys.excepthook = sys.unraisablehook = lambda *_: time.sleep(3600)
threading.Thread(target=time.sleep, args=(3600,)).start()
""")
GROUP.add("first_thread_ends_alone", "died time", """
threading.Thread(target=time.sleep, args=(3600,)).start()
call("exit", 0)
""")
