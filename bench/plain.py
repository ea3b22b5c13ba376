"""bench/plain.py - runs each line of standard input as code, and says `.`; nothing confines it."""
import os
import sys

names = {}
os.write(1, b".")
for line in sys.stdin:
    exec(line.replace("\\n", "\n"), names)
    os.write(1, b".")
