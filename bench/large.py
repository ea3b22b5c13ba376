"""bench/large.py PORT - the floor of bench/large: json.dumps, http.client and json.loads.

Each line of standard input is two sizes in bytes: one call with a prompt of the first and an answer
of the second, kept alive; the microseconds that it took are printed.
"""
import http.client
import json
import sys
import time

LINE = '2026-11-22 10:00:01 "GET /" 200 fine, as all of them were today\n'


def main():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    for line in sys.stdin:
        size, answer = map(int, line.split())
        prompt = (LINE * (size // len(LINE) + 1))[:size]
        start = time.perf_counter()
        body = json.dumps({"model": "bench", "messages": [{"role": "user", "content": prompt}]})
        connection.request("POST", f"/{answer}/chat/completions", body,
                           {"Content-Type": "application/json"})
        json.loads(connection.getresponse().read())
        print((time.perf_counter() - start) * 1e6, flush=True)


main()
