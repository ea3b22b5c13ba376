"""class No: def no()"""
LIMIT = 3  # DEF constant LIMIT


class Shelf:  # DEF class Shelf
    def size(self):  # DEF method Shelf.size
        def inner():  # DEF function Shelf.size.inner
            return 1
        return inner

    async def load(self): ...  # DEF method Shelf.load


if LIMIT:
    def late(): ...  # DEF function late
else:
    try:
        for each in range(3):
            def looped(): ...  # DEF function looped
    except ValueError:
        class Other: ...  # DEF class Other
