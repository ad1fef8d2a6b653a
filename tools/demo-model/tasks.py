#!/usr/bin/env python3
"""The conversations on which the demo model is judged, the same for the same seed.

    python3 tasks.py     writes tests/golden/demo_tasks_*.txt: all tasks with the accuracies of models/demo/eval.json

A task has figures.  A figure counts how many of its answers are right: those assistant segments (or, in dense
recall, the values named in them) of which every token is the model's arg-max, given the text before it."""
import json
import os
import random

import corpus

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SEED = 20261
DENSE = "dense_recall_by_distance_accuracy_and_count"
BINS = (("1-64", 64), ("64-128", 128), ("128-256", 256), ("256-512", 512), ("512-1024", 1024), ("1024-2000", 2000))
DENSE_PLAN = ((120, 20), (250, 20), (500, 16), (1000, 16), (2000, 12))


def only_facts(r):
    """A small-talk question that has one right answer."""
    free = {x for _, ans, _ in corpus.TALK for x in ans}
    while True:
        q, t, a = corpus.talk_turn(r)
        if a not in free and "tiny model" not in a and "very small model" not in a and not q.startswith(("Name ", "Tell me t", "Tell me f")):
            return q, t, a


def one(r, q, t, a, th):
    c = corpus.Conv(r, corpus.system_text(r))
    c.turn(q, t, a, th)
    return c.seg


def math_kind(kind, held, th):
    def f(r):
        while True:
            q, t, a = corpus.math_turn(r, held)
            word = " has " in q or "There are" in a or " left" in a
            k = "word" if word else "mul" if "*" in a else "sub" if " - " in a else "add"
            if k == kind:
                return one(r, q, t, a, th)
    return f


def exact(r, n):
    """Yields (group, conversations, figures); a figure is (name, slice of the assistant segments of a conversation)."""
    every = slice(None)
    for b in (30, 60, 120, 250, 500, 900, 1500, 2500):
        yield "recall_exact_by_text_length", [corpus.gen_recall(r, b, 1, False, True) for _ in range(max(8, min(n, n * 700 // b)))], [(str(b), every)]
    for b in (100, 400, 800):
        yield "recall_exact_any_position", [corpus.gen_recall(r, b, 3, False) for _ in range(n // 2)], [(str(b), every)]
    for th in (False, True):
        for k in ("add", "sub", "mul", "word"):
            yield ("arithmetic_exact_" + ("thinking" if th else "direct"),
                   [math_kind(k, True if k != "mul" else None, th)(r) for _ in range(n)], [(k, every)])
    for kind in ("bash", "read", "weather"):
        for th in (False, True):
            k = kind + ("_thinking" if th else "")
            yield ("tool_exact", [corpus.gen_tool(r, 1, th, ["bash", "read", "get_weather"], kind) for _ in range(n // 2)],
                   [(k + "_call", slice(0, 1)), (k + "_answer", slice(1, None))])
    yield "tool_exact", [corpus.gen_tool(r, 1, False, ["get_weather"], "bash") for _ in range(n // 2)], [("missing_tool_declined", every)]
    c = []
    for _ in range(n // 2):
        s = corpus.gen_tool(r, 1, False, ["bash", "read", "get_weather"], "bash")[:1]
        q, t, a = only_facts(r)
        k = corpus.Conv(r)
        k.seg = [(s[0][0].split(corpus.USER)[0], 0)]
        k.turn(q, t, a, False)
        c.append(k.seg)
    yield "tool_exact", c, [("no_tool_needed_exact", every)]
    for th in (False, True):
        yield "facts_exact", [one(r, *only_facts(r), th) for _ in range(2 * n)], [("thinking" if th else "direct", every)]


def dense(tok, plan=DENSE_PLAN, seed=4242):
    """Yields (segments, {index of a segment: figure}): what is judged is the first token of these segments, a value, by
    the number of tokens back to its nearest mention (the text, or an earlier answer).  plan: (tokens of the
    conversation, conversations).  'absent' are the questions whose answer is that the text does not say."""
    r = random.Random(seed)
    size = lambda t: len(tok.encode(t))
    for budget, n in plan:
        for _ in range(n):
            meta = []
            nf = r.randrange(3, 7) if budget < 200 else r.randrange(4, max(5, min(60, budget // 12)))
            seg = corpus.gen_dense(r, budget, size, 1.0, nf=nf, nq=16, meta=meta, spread=budget > 200)
            at = [0]
            for t, _ in seg:
                at.append(at[-1] + size(t))
            figure = {}
            for v, f in meta:
                k = "absent" if f is None else next((b for b, top in BINS if at[v] - at[f] <= top), None)
                if k:
                    figure[v] = k
            yield seg, figure


# ------------------------------------------------------------- files for the tests
FIGURE = {"recall_exact_by_text_length": "text_of_", "recall_exact_any_position": "any_position_", DENSE: "value_", "arithmetic_exact_direct": "direct_",
          "arithmetic_exact_thinking": "thinking_", "tool_exact": "", "facts_exact": "facts_"}


class Writer:
    def __init__(self, name, accuracies):
        self.f = open(os.path.join(ROOT, "tests", "golden", f"demo_tasks_{name}.txt"), "w", encoding="utf-8")
        self.accuracies, self.figures = accuracies, 0
        self.f.write("# Conversations that judge the demo model, written by tools/demo-model/tasks.py. `figure` names a figure, counted from\n"
                     "# 0, with its accuracy in float32; `start` begins a conversation; `text N`, `say F N` and `value F N` are its parts, with\n"
                     "# N bytes of text behind the line. Every token of a `say`, and the first of a `value`, counts for figure F.\n")

    def figure(self, group, name):
        got = self.accuracies[group][name]
        self.f.write(f"figure {FIGURE[group]}{name} {got[0] if isinstance(got, list) else got}\n")
        self.figures += 1
        return self.figures - 1

    def conversation(self, seg, marks):
        """marks: {index of a segment: (word, figure)}."""
        self.f.write("start\n")
        for i, (text, _) in enumerate(seg):
            word = "{} {}".format(*marks[i]) if i in marks else "text"
            self.f.write(f"{word} {len(text.encode('utf-8'))}\n{text}\n")


def main():
    import tokenizer
    accuracies = json.load(open(os.path.join(ROOT, "models", "demo", "eval.json")))
    tok = tokenizer.Tokenizer.load(os.path.join(tokenizer.FOLDER, "tokenizer.json"))
    files = {name: Writer(name, accuracies) for name in ("recall", "arithmetic", "tool", "facts", "dense")}
    for group, convs, figures in exact(random.Random(SEED), 100):
        file = files[group.split("_")[0]]
        ids = [(file.figure(group, name), part) for name, part in figures]
        for seg in convs:
            own = [i for i, (_, w) in enumerate(seg) if w]
            file.conversation(seg, {i: ("say", k) for k, part in ids for i in own[part]})
    file = files["dense"]
    ids = {name: file.figure(DENSE, name) for name in accuracies[DENSE]}
    for seg, figure in dense(tok):
        file.conversation(seg, {i: ("value", ids[k]) for i, k in figure.items()})


if __name__ == "__main__":
    main()
