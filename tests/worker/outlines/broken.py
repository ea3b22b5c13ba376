"""
def no():
"""
def first(:  # DEF function first
    text = 'def no():'
class Shelf:  # DEF class Shelf
