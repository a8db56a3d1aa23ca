"""The steps in their order, and the loop over the items that are not done yet."""
import time

import checks
import inventory
import process
import shared
import speed
from context import Failed, OutOfTime, Skipped
from step import Step

STEPS = [
    Step("inventory", "machine, libraries, ceilings", inventory.items),
    Step("operations", "each operation against the reference, in four variants", checks.operations),
    Step("graphs", "the same bits with and without graphs; the CPU's losses", checks.graphs),
    Step("speed", "our training step, four models, two batches", speed.ours),
    Step("profile", "the kernels of one step", speed.profile),
    Step("peers", "PyTorch and llm.c", speed.peers),
    Step("sanitizer", "our kernels under compute-sanitizer", checks.sanitizer),
    Step("shared", "GPU and CPU workers in one run", shared.shared),
]
NAMES = [s.name for s in STEPS]


def chosen(first, only):
    if only:
        return [s for s in STEPS if s.name in only]
    return STEPS[NAMES.index(first) if first else 0:]


def _attempt(c, item):
    """Returns status, text and data of an item, whatever happens in it."""
    try:
        return "passed", "", item.run(c)
    except Skipped as e:
        return "skipped", str(e), None
    except Failed as e:
        return e.status, str(e), e.data
    except OutOfTime:
        return "not run", "the minutes ended while it ran", None
    except Exception as e:  # one item's fault, ours too, ends no other item
        return "failed", "%s: %s" % (type(e).__name__, e), None
    finally:
        process.kill_all()


def _one_line(text):
    return " ".join(str(text).split())[:400]


def _do(c, results, step, item, progress):
    begin = time.monotonic()
    results.add(step=step.name, item=item.name, status="began")
    c.item = "%s, %s" % (step.name, item.name)
    status, text, data = _attempt(c, item)
    seconds = time.monotonic() - begin
    results.add(step=step.name, item=item.name, status=status, text=_one_line(text), seconds=round(seconds, 3),
                data=data)
    progress("%-10s %-34s %-9s %6.1f s  %s" % (step.name, item.name, status, seconds, _one_line(text)[:120]))


def run(c, results, wanted, retry, progress):
    """Does the items of the wanted steps that are not done; lists those for which there is no time."""
    for step in wanted:
        c.item = step.name
        for item in step.items(c):
            if results.is_done(step.name, item.name, retry):
                continue
            if c.left_s() < item.needs_s:
                results.add(step=step.name, item=item.name, status="not run", seconds=0, data=None,
                            text="needs %d s, %d s were left" % (item.needs_s, max(0, c.left_s())))
                continue
            _do(c, results, step, item, progress)
        c.nvidia_path = bool(results.data("inventory", "libraries").get("nvidia_path"))
