"""Run as a program by ``ledger_helpers.Children``: forks a process for each call that it is asked to make.

Reads lines of JSON, ``[[function, arguments], ...]``. All calls start together, each in its own process;
what they print and how they ended is answered in one line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from ledger_helpers import AnyPlan, Y, answer_all, random_numbers, small_plan
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

import cloakgp
import cloakgp.private.room
from cloakgp import ledger
from cloakgp.ledger import BudgetExceeded, Ledger, LedgerError
from cloakgp.ledger.store import Store


def say(**words):
    """One line of JSON, whole, at once."""
    os.write(1, (json.dumps(words) + "\n").encode())


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def thing(path):
    if not isinstance(path, str):
        return path
    return pickle.loads(Path(path).read_bytes())  # noqa: S301


def outcome(release):
    return {"z": release.z.tolist(), "entry": release.receipt.entry, "head": release.receipt.head}


def spend(url, plan, y, dataset="people", request=None, save=None, timeout=60):
    """Release, and print what came out; or that the budget was used up."""
    book, plan = Ledger(url, who="a child", timeout=timeout), thing(plan)
    try:
        release = plan.release(np.array(y), ledger=book, dataset=dataset, request=request, why="a race")
    except BudgetExceeded:
        say(refused=True)
        return
    except LedgerError as error:
        say(error=str(error))
        return
    say(**outcome(release))
    if save:
        release.save(save)


def answer(url, plan, drawn=None, request=None, timeout=60):
    """All stages of a release; `drawn` gets a line whenever noise is drawn."""
    book, plan = Ledger(url, who="a child", timeout=timeout), thing(plan)

    def draw():
        if drawn:
            with Path(drawn).open("a") as file:
                file.write("drawn\n")
        return random_numbers()

    for charge in answer_all(book, plan, draw, request=request):
        say(z=charge.answer.tolist(), entry=charge.receipt.entry)


def create(url, dataset, epsilon=1.0, delta=0.01):
    try:
        Ledger(url, who="a child").create(dataset, epsilon=epsilon, delta=delta)
    except LedgerError as error:
        say(error=str(error))
        return
    say(created=dataset)


def spend_and_fork(url, plan, y):
    """One Ledger object, used before a fork, and by both afterwards."""
    book, plan = Ledger(url), thing(plan)
    book.create("people", epsilon=1.0, delta=0.01)
    say(**outcome(plan.release(np.array(y), ledger=book, dataset="people")))
    forked = os.fork()
    say(**outcome(plan.release(np.array(y), ledger=book, dataset="people")))
    if forked == 0:
        os._exit(0)
    os.waitpid(forked, 0)
    say(**outcome(plan.release(np.array(y), ledger=book, dataset="people")))


def spend_within(bytes, **arguments):
    """Spend while no file may grow by more than this."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = max(
        path.stat().st_size for path in Path(arguments["url"].removeprefix("sqlite:///")).parent.iterdir()
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes if bytes < size else size, resource.RLIM_INFINITY))
    spend(**arguments)


def become_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def spend_as_nobody(plan, **arguments):
    plan = thing(plan)
    become_nobody()
    spend(plan=plan, **arguments)


def create_as_nobody(url, **_):
    become_nobody()
    create(url, "people")


def die_at(step, then, **arguments):
    """Call `then`, and be killed at a step of it."""
    HOOKS[step]()
    globals()[then](**arguments)


def lines(then, **arguments):
    """Print which lines of this library a call goes through, in the order in which it first comes to them."""
    passed = []
    trace(passed.append)
    globals()[then](**arguments)
    sys.settrace(None)
    say(lines=list(dict.fromkeys(passed)))


def die_at_line(place, then, **arguments):
    """Call `then`, and be killed when it first comes to this line."""
    trace(lambda here: die() if list(here) == place else None)
    globals()[then](**arguments)
    sys.settrace(None)


TRACED = (ledger.book, ledger.chain, ledger.store, cloakgp.ledger.charging)


def trace(visit):
    names = {module.__file__ for module in TRACED}

    def per_line(frame, event, argument):
        if event == "line":
            visit((frame.f_code.co_filename, frame.f_lineno))
        return per_line

    def per_call(frame, event, argument):
        return per_line if frame.f_code.co_filename in names else None

    sys.settrace(per_call)


def around(owner, name, *, before=None, after=None):
    """Put something before or after each call of a function."""
    inner = getattr(owner, name)

    def wrapped(*args, **kwargs):
        if before:
            before()
        result = inner(*args, **kwargs)
        if after:
            after()
        return result

    setattr(owner, name, wrapped)


def at_commit(when):
    """Die before or after the driver's call that commits a charge."""
    appended = []
    around(Store, "append", after=lambda: appended.append(1))

    for dialect in (SQLiteDialect_pysqlite, PGDialect_psycopg):
        around(dialect, "do_commit", **{when: lambda: appended and die()})


HOOKS = {  # what is not a line of the ledger's: those are all passed in another test
    "before y is read": lambda: around(cloakgp.private.room, "measure", before=die),
    "after noise is drawn": lambda: around(cloakgp.private.room, "add_noise", after=die),
    "before the commit": lambda: at_commit("before"),
    "after the commit": lambda: at_commit("after"),
    "before the answer is shown": lambda: around(sys.modules[__name__], "outcome", before=die),
    "while the file is written": lambda: around(Path, "replace", before=die),
}


def child(function, arguments, go, out):
    os.dup2(out, 1)
    os.read(go, 1)  # all start when the other end is closed
    try:
        globals()[function](**arguments)
    except BaseException as error:
        say(failed=f"{type(error).__name__}: {error}")
    os._exit(0)


def serve(calls):
    go_read, go_write = os.pipe()
    running = []
    for function, arguments in calls:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go_write)
            os.close(reading)
            child(function, arguments, go_read, writing)
        os.close(writing)
        running.append((pid, reading))
    os.close(go_read)
    os.close(go_write)
    answers = []
    for pid, reading in running:
        with os.fdopen(reading) as pipe:
            printed = pipe.read().splitlines()
        _, status = os.waitpid(pid, 0)
        answers.append((os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, printed))
    return answers


def warm_up():
    """Do all that a child does once, so that it need not import and compile it."""
    sa.create_engine("postgresql+psycopg://nowhere/nothing")
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger(f"sqlite:///{folder}/budget.db")
        book.create("people", epsilon=1.0, delta=0.01)
        small_plan().release(Y, ledger=book, dataset="people")
        with suppress(BudgetExceeded):
            book.charge(AnyPlan(mu=10.0), "people").__enter__()
        with suppress(BudgetExceeded):
            small_plan().release(Y, ledger=book, dataset="people")


if __name__ == "__main__":
    warm_up()
    gc.freeze()  # or each child would copy the memory that it looks through
    out = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        out.write(json.dumps(serve(json.loads(line))) + "\n")
        out.flush()
