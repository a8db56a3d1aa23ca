"""Finds the loops of a kernel from its branches: natural loops, that is a branch back to an instruction that
every way to the branch has passed."""

from dataclasses import dataclass

from cubin import count


@dataclass
class Loop:
    head: int  # index of the first instruction
    blocks: frozenset
    counts: dict  # operation: how often in one pass over all of the body

    @property
    def instructions(self):
        return sum(self.counts.values())


def basic_blocks(instructions):
    """Returns [(begin, end)], and for each the blocks that may follow it."""
    leaders = {0} | {i.target for i in instructions if i.target is not None}
    leaders |= {n + 1 for n, i in enumerate(instructions) if i.target is not None or i.ends}
    begins = sorted(b for b in leaders if 0 <= b < len(instructions))
    ranges = list(zip(begins, begins[1:] + [len(instructions)]))
    index = {begin: n for n, begin in enumerate(begins)}
    follow = []
    for begin, end in ranges:
        last, after = instructions[end - 1], set()
        if last.target is not None:
            after.add(index[last.target])
        if not last.ends and end in index:
            after.add(index[end])
        follow.append(after)
    return ranges, follow


def predecessors(follow):
    before = [set() for _ in follow]
    for block, after in enumerate(follow):
        for n in after:
            before[n].add(block)
    return before


def dominators(follow):
    """Returns, for each block, those that every way from the entry to it passes; of one that no way reaches,
    nothing is known and the set is empty."""
    before, everything = predecessors(follow), set(range(len(follow)))
    passed = [{0}] + [everything] * (len(follow) - 1)
    changed = True
    while changed:
        changed = False
        for block in range(1, len(follow)):
            ways = [passed[b] for b in before[block]]
            now = set.intersection(*ways) | {block} if ways else set()
            if now != passed[block]:
                passed[block], changed = now, True
    return passed


def find(instructions):
    """Returns the loops; two branches back to one head are one loop."""
    ranges, follow = basic_blocks(instructions)
    before, passed, bodies = predecessors(follow), dominators(follow), {}
    for latch, after in enumerate(follow):
        for head in after & passed[latch]:
            body, todo = bodies.setdefault(head, {head}), [latch]
            while todo:
                block = todo.pop()
                if block not in body:
                    body.add(block)
                    todo.extend(before[block])
    loops = []
    for head, body in bodies.items():
        inside = [i for block in body for i in instructions[slice(*ranges[block])]]
        loops.append(Loop(ranges[head][0], frozenset(body), count(inside)))
    return [loop for loop in loops if not is_end(loop)]


def is_end(loop):
    """Whether it is the branch to itself that stands behind the end of each kernel."""
    return loop.counts == {"BRA": 1}


def innermost(loops):
    """Returns those of some loops that contain no other of them."""
    return [loop for loop in loops if not any(other.blocks < loop.blocks for other in loops)]
