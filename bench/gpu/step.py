"""The parts of a step."""


class Item:
    """The smallest part of a step that is done or not. `run(context)` returns its figures; `needs_s`: with less
    time than that left it is not begun."""

    def __init__(self, name, run, needs_s):
        self.name, self.run, self.needs_s = name, run, needs_s


class Step:
    """`items(context)` returns the items, in their order."""

    def __init__(self, name, about, items):
        self.name, self.about, self.items = name, about, items
