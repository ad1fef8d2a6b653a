#!/usr/bin/env python3
"""The prompts of models/demo/samples.md, in their order.

    python3 sample_prompts.py     writes tests/golden/demo_samples.txt from the prompts and the answers in samples.md"""
import os
import random

import corpus

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

TALK = [
    ("Hello!", False), ("Who are you?", False), ("What can you do?", True),
    ("Tell me a story about a fox who lost a lamp.", False),
    ("Tell me a story about a robot named Ida who found a kite.", False),
    ("Write a short story about a penguin and a drum.", True),
    ("What is 47 + 38?", False), ("What is 47 + 38?", True), ("What is 91 - 57?", True), ("What is 7 * 8?", False),
    ("Tom has 26 apples and gets 17 more. How many apples does Tom have now?", True),
    ("What color is the sky?", False), ("What does a cow eat?", False), ("What is the capital of Norway?", False),
    ("Which day comes after Tuesday?", False), ("Count from 7 to 15.", False), ("Repeat after me: brave silver owl", False),
    ("Spell garden.", False), ("Who won the cup in 1998?", False),
    ("Remember this:\nAnna=42\nBruno=917\nSilver=308\nRiver=65\nOlga=771\n\nWhat is the value of Silver?", False),
]
TOOLS = [
    ("How many lines are in notes.txt?", ["bash", "read", "get_weather"], "bash", "128 notes.txt", False),
    ("List the files in docs.", ["bash"], "bash", "index.md\nreadme.txt", True),
    ("What is the port in config.ini?", ["read", "bash"], "read", "host = anna\nport = 8080\ncolor = red", False),
    ("What is the weather in Oslo?", ["get_weather", "bash", "read"], "get_weather", "{\"city\": \"Oslo\", \"temp\": -3, \"sky\": \"snowy\"}", True),
    ("Make a folder named backup.", ["bash", "read"], "bash", "", False),
    ("Hello!", ["bash", "read"], None, None, False),
    ("List the files.", ["get_weather"], None, None, False),
]


def chat(user, system="", thinking=False):
    return corpus.BOS + system + corpus.USER + user + corpus.ASSISTANT + (corpus.THINK if thinking else corpus.ENDTHINK)


def run(answer, heading, few=1000):
    """Calls answer(title, rendered prompt), which returns what the model says, for every prompt, and heading(text)
    between them. "{n}" in a title stands for the number of tokens of the prompt."""
    for q, th in TALK[:few]:
        answer(q.replace("\n", " / ") + ("  (thinking)" if th else ""), chat(q, "", th))
    heading("## With tools")
    for q, names, tool, result, th in TOOLS[:few]:
        block = corpus.tool_block(random.Random(len(q)), names)
        text = chat(q, "You are a helpful assistant\n\n" + block, th)
        got = answer(f"{q}  (tools: {', '.join(names)}{'; thinking' if th else ''})", text)
        if result is not None and "invoke" in got:
            text += got + corpus.USER + "<tool_result>" + result + "</tool_result>" + corpus.ASSISTANT + (corpus.THINK if th else corpus.ENDTHINK)
            answer("… after the tool result `" + result.replace("\n", " / ") + "`", text)
    r = random.Random(99)
    for b in (300, 900):
        q, _, want = corpus.recall_doc(r, b, 1, True)[0]
        answer(f"A text of {{n}} tokens with facts, then: “{q.splitlines()[-1]}” (right answer: {want})", chat(q))


def samples(path):
    """(title, answer) of every sample of samples.md."""
    part = open(path, encoding="utf-8").read().split("\n```\n")
    return [(part[i].rsplit("**", 2)[1], part[i + 1]) for i in range(0, len(part) - 1, 2)]


def main():
    known = iter(samples(os.path.join(ROOT, "models", "demo", "samples.md")))
    with open(os.path.join(ROOT, "tests", "golden", "demo_samples.txt"), "w", encoding="utf-8") as f:
        f.write("# Prompts and answers of models/demo/samples.md, written by tools/demo-model/sample_prompts.py. After a word and a\n"
                "# number of bytes stand that many bytes and a line end.\n")

        def answer(title, prompt):
            name, got = next(known)
            before, _, after = title.partition("{n}")
            assert name.startswith(before) and name.endswith(after), (name, title)
            for word, text in (("title", name), ("prompt", prompt), ("answer", got)):
                f.write(f"{word} {len(text.encode('utf-8'))}\n{text}\n")
            return got
        run(answer, lambda text: None)
    assert next(known, None) is None


if __name__ == "__main__":
    main()
