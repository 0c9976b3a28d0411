"""Work on all cores: for what releases the interpreter, as the compiler does."""

import os


def for_each(work, items):
    """Call `work` with each item, in as many threads as there are cores; the first exception ends it and is raised."""
    from threading import Thread

    items = list(items)
    left, errors = iter(items), []  # an iterator that threads may share

    def run():
        try:
            for item in left:
                if errors:
                    break
                work(item)
        except BaseException as error:
            errors.append(error)

    # Daemons: after Ctrl-C nobody waits for what they are at, nor does the end of the process.
    threads = [Thread(target=run, daemon=True) for _ in range(min(len(items), core_count()))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:
        errors.append(error)
    if errors:
        raise errors[0]


def core_count():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
