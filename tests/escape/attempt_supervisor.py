"""G10: a worker that says over its pipe what it likes. One lie, one dead worker, and the run goes on."""

from attempts import Group

GROUP = Group("supervisor", "--block-timeout", "4s", "--max-depth", "2", "--worker-memory", "256M")

# Bytes that are no frame, or not JSON as it is read here.

GROUP.each(
    "violation",
    nothing_in_a_frame="lie(b'')",
    no_json="lie(b'hello')",
    no_object="lie(b'[1, 2]')",
    text_behind_the_object="lie(b'{\"type\":\"budget\",\"id\":2}x')",
    two_objects="lie(b'{\"type\":\"budget\",\"id\":1}{\"type\":\"budget\",\"id\":2}')",
    byte_order_mark="lie(b'\\xef\\xbb\\xbf{\"type\":\"budget\",\"id\":1}')",
    same_key_twice="lie(b'{\"type\":\"budget\",\"id\":1,\"id\":2}')",
    same_key_twice_by_escapes="lie(b'{\"type\":\"budget\",\"id\":1,\"\\\\u0069d\":2}')",
    invalid_utf8="lie(b'{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\\xff\"],\"model\":null}')",
    overlong_utf8="lie(b'{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\\xc0\\xaf\"],\"model\":null}')",
    lone_surrogate="lie(b'{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"\\\\ud800\"],\"model\":null}')",
    nul_in_a_name="lie(b'{\"type\":\"llm_query\",\"id\":1,\"prompts\":[\"q\"],\"model\":\"m\\\\u0000x\"}')",
    nul_in_a_key="lie(b'{\"type\":\"budget\",\"id\\\\u0000\":1,\"id\":2}')",
    not_a_number="lie(b'{\"type\":\"budget\",\"id\":NaN}')",
    infinity="lie(b'{\"type\":\"budget\",\"id\":-Infinity}')",
    number_without_bound="lie(b'{\"type\":\"budget\",\"id\":1e999}')",
    number_of_a_million_digits="lie(b'{\"type\":\"budget\",\"id\":' + b'9' * 1000000 + b'}')",
    deep_array="lie(b'{\"type\":' + b'[' * 500000 + b']' * 500000 + b'}')",
    deep_object="lie(b'{\"a\":' * 100000 + b'1' + b'}' * 100000)",
    a_million_keys="lie(b'{' + b','.join(b'\"%x\":0' % i for i in range(90000)) + b'}')",
    length_without_bound="write_all(b'\\xff' * 4)\ntime.sleep(3600)",
    length_just_too_large="write_all(struct.pack('>I', (1 << 20) + 1) + bytes(1 << 20))\ntime.sleep(3600)",
    length_of_the_wrong_end="body = json.dumps(query(1, 'q')).encode()\nwrite_all(struct.pack('<I', len(body)) + body)\ntime.sleep(3600)",
)

# Messages that no worker sends, or not now, or not so.

GROUP.each(
    "violation",
    unknown_type="lie({'type': 'shutdown'})",
    no_type="lie({'id': 1})",
    type_of_a_wrong_type="lie({'type': 7, 'id': 1})",
    ready_again="lie({'type': 'ready', 'python': '3.11.2', 'layers': ['everything']})",
    started_again="lie({'type': 'started', 'error': None})",
    value_unasked="lie({'type': 'value', 'value': 'x', 'variables': ''})",
    the_supervisors_reply="lie({'type': 'reply', 'id': 1, 'values': ['x'], 'errors': [None], 'messages': [None]})",
    the_supervisors_exec="lie({'type': 'exec', 'block': 1, 'code': 'x'})",
    the_supervisors_start="lie({'type': 'start', 'names': [], 'sizes': [], 'indexes': [], 'max_output': 1})",
    field_too_many="lie({'type': 'budget', 'id': 1, 'depth': 0})",
    field_too_few="lie({'type': 'llm_query', 'id': 1, 'prompts': ['q']})",
    function_that_is_not_there="lie({'type': 'function', 'id': 1, 'name': 'open', 'arguments': '{}'})",
    function_without_a_name="lie({'type': 'function', 'id': 1, 'name': None, 'arguments': '{}'})",
    function_with_arguments_of_a_list="lie({'type': 'function', 'id': 1, 'name': 'f', 'arguments': '[]'})",
    function_with_an_object_itself="lie({'type': 'function', 'id': 1, 'name': 'f', 'arguments': {}})",
    another_provider="lie(query(1, 'q', base_url='http://127.0.0.1:1/'))",
    another_budget="lie(query(1, 'q', max_tokens=-1))",
    number_negative="lie({'type': 'budget', 'id': -1})",
    number_too_large="lie({'type': 'budget', 'id': (1 << 53) + 1})",
    number_of_64_bits="lie({'type': 'budget', 'id': 1 << 64})",
    number_real="lie(b'{\"type\":\"budget\",\"id\":1.0}')",
    number_as_text="lie({'type': 'budget', 'id': '1'})",
    number_true="lie({'type': 'budget', 'id': True})",
    number_null="lie({'type': 'budget', 'id': None})",
    name_too_long="lie(query(1, 'q', model='m' * 257))",
    prompts_as_text="lie(query(1, prompts='q'))",
    prompt_null="lie(query(1, None))",
    prompts_too_many="lie(query(1, *[''] * 10001))",
    contexts_too_few="lie({'type': 'rlm_query', 'id': 1, 'tasks': ['a', 'b'], 'contexts': [None]})",
    done_without_an_answer="lie(done(final='final_direct'))",
    done_with_an_answer_only="lie(done(answer='x'))",
    done_of_the_next_block="lie(done('x', block=own_block() + 1))",
    done_of_the_last_block="lie(done('x', block=own_block() - 1))",
    done_with_a_hundred_megabytes="lie(done(0, attachments=[100 << 20]), *[bytes([120]) * (1 << 20)] * 100)",
    done_with_another_final="lie(done(final='root', answer='x'))",
    call_with_a_number_in_use="say(query(900001, 'slow'))\nlie(query(900001, 'slow'))",
)

# Attachments.

GROUP.each(
    "violation",
    attachment_of_negative_size="lie(query(1, 0, attachments=[-1]))",
    attachment_without_bound="lie(query(1, 0, attachments=[(4 << 30) + 1]))",
    attachments_that_overflow="lie(query(1, 0, 1, attachments=[(1 << 53), (1 << 53)]))",
    attachments_too_many="lie(query(1, 'q', attachments=[0] * 10001))",
    attachment_never_named="lie(query(1, 'q', attachments=[1]), b'x')",
    attachment_named_twice="lie(query(1, 0, 0, attachments=[1]), b'x')",
    attachment_that_is_not_there="lie(query(1, 1, attachments=[1]), b'x')",
    attachment_for_a_name="lie(query(1, 'q', model=0, attachments=[1]), b'x')",
    attachments_as_text="lie(query(1, 'q', attachments='many'))",
)

GROUP.add("attachment_announced_and_not_sent", "time violation", "lie(query(1, 0, attachments=[1 << 20]), bytes(1000))")
GROUP.add("half_a_frame_and_silence", "time violation", "write_all(struct.pack('>I', 1000) + b'{')\ntime.sleep(3600)")
GROUP.add("half_a_frame_and_death", "died", "write_all(struct.pack('>I', 1000) + b'{')\nos._exit(0)")
GROUP.add("half_a_length_and_death", "died", "write_all(b'\\0\\0')\nos._exit(0)")
GROUP.add("a_byte_at_a_time", "time violation", """
while True:
    write_all(b"\\0")
    time.sleep(0.2)
    write_all(b"\\0\\1\\0{")
    while True:
        write_all(b" ")
        time.sleep(0.2)
""")

# Its pipes.

GROUP.each(
    "violation died",
    closes_what_it_says="os.close(WRITE)\ntime.sleep(3600)",
    closes_what_it_hears="os.close(READ)\nllm_query('quick')",
    closes_everything="for fd in range(64):\n    try: os.close(fd)\n    except OSError: pass\ntime.sleep(3600)",
    another_descriptor_in_its_place="""
import fcntl
ours, theirs = socket.socketpair()
os.close(WRITE)
assert fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD_CLOEXEC, WRITE) == WRITE
llm_query("quick")
""",
)
GROUP.add("pipe_in_packets", "violation died returned time", """
import fcntl
fcntl.fcntl(WRITE, fcntl.F_SETFL, os.O_DIRECT | os.O_NONBLOCK)
body = json.dumps(query(1, "quick")).encode()
os.write(WRITE, struct.pack(">I", len(body)))
for _ in range(10000):
    try:
        os.write(WRITE, body)
    except BlockingIOError:
        time.sleep(0.001)
""")

# True words, too many of them.

GROUP.add("a_hundred_thousand_calls_unheard", "violation died time", """
frame = b"".join(struct.pack(">I", len(body)) + body
                 for body in (json.dumps({"type": "budget", "id": 1000 + i}).encode() for i in range(1000)))
for _ in range(1000):
    write_all(frame)
    time.sleep(0)
""")

GROUP.add("a_million_tiny_frames", "violation", "write_all(struct.pack('>I', 0) * (1 << 20))\ntime.sleep(3600)")

GROUP.add("more_calls_than_are_served", "returned", """
for i in range(300):
    say(query(1000 + i, "brisk"))
while select.select([READ], [], [], 0.5)[0]:
    os.read(READ, 1 << 20)
""")

GROUP.add("ten_thousand_prompts", "returned", """
assert len(batch_llm_query(["quick"] * 4000)) == 4000
say(query(77, *["quick"] * 10000))
while select.select([READ], [], [], 0.5)[0]:
    os.read(READ, 1 << 20)
""")

GROUP.add("calls_of_many_threads", "held", """
answers = []
threads = [threading.Thread(target=lambda: answers.append(llm_query("quick"))) for _ in range(60)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
check(answers == ["quick answer"] * 60, answers)
""")

GROUP.add("gigabyte_for_a_prompt", "time violation returned LLMError BudgetExceeded", """
say(query(1, 0, attachments=[4 << 30]))
text = bytes(1 << 20)
for _ in range(1024):
    write_all(text)
time.sleep(3600)
""")

# A block's end that its own code announced is as good as any: what it says is its own. The worker
# that then has two ends to tell is out of step, and dies with the next block at the latest.

FORGED = {
    "done": "say(done('forged: mine anyway'))",
    "done_of_bytes": "say(done(0, attachments=[6]), b'\\xff\\0\\x1b[2J')",
    "traceback": "say(done(error='Traceback\\n\\nEPERM: the walls are down\\x1b]0;x\\x07\\u202e'))",
}
for name, code in FORGED.items():
    GROUP.add("forged_" + name, "returned EPERM", code + "\nselect.select([READ], [], [])\nos._exit(0)")
    GROUP.add("after_forged_" + name, "died", "raise ValueError('nobody is there')")

GROUP.add("done_twice_in_one_breath", "returned", """
sys.same_worker = True
ends = [json.dumps(done(text)).encode() for text in ("one", "two")]
write_all(b"".join(struct.pack(">I", len(end)) + end for end in ends))
time.sleep(3600)
""")
GROUP.add("after_done_twice_in_one_breath", "violation held", "check(not hasattr(sys, 'same_worker'), 'it lived on')")

# Calls, and what they may ask for.

GROUP.add("model_by_path", "LLMError BudgetExceeded returned", "llm_query('quick', model='../../etc/passwd')")
GROUP.add("model_with_line_breaks", "LLMError BudgetExceeded returned", "llm_query('quick', model='m\\r\\nX-Evil: 1')")
GROUP.add("a_pickle_is_a_text", "returned", "llm_query('quick cos\\nsystem\\n(S\\'true\\'\\ntR.')")
