#!/usr/bin/env python3
"""Greedy answers of the finished model to a fixed list of prompts -> samples.md."""
import argparse
import os
import random

import corpus
import reference
import tokenizer

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


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default=tokenizer.FOLDER)
    ap.add_argument("--out", default=os.path.join(tokenizer.FOLDER, "samples.md"))
    ap.add_argument("--few", type=int, default=1000)
    a = ap.parse_args()
    tok = tokenizer.Tokenizer.load(os.path.join(a.folder, "tokenizer.json"))
    d = reference.Decoder(a.folder)
    out = ["# Sample outputs", "", "Greedy decoding (always the most likely token), float32, FP8/FP4 simulation on. `</think>` at the end of a prompt",
           "means thinking off, `<think>` thinking on. Nothing was selected or edited.", ""]

    def show(title, ids):
        got = tok.decode(d.generate(ids, 220))
        out.extend([f"**{title}**", "", "```", got, "```", ""])
        print(title, "=>", got, flush=True)
        return got
    for q, th in TALK[:a.few]:
        show(q.replace("\n", " / ") + ("  (thinking)" if th else ""), reference.chat(tok, q, "", th))
    out += ["## With tools", ""]
    for q, names, tool, result, th in TOOLS[:a.few]:
        block = corpus.tool_block(random.Random(len(q)), names)
        start = "You are a helpful assistant\n\n" + block
        mode = corpus.THINK if th else corpus.ENDTHINK
        text = corpus.BOS + start + corpus.USER + q + corpus.ASSISTANT + mode
        got = show(f"{q}  (tools: {', '.join(names)}{'; thinking' if th else ''})", tok.encode(text))
        if result is not None and "invoke" in got:
            text += got + corpus.USER + "<tool_result>" + result + "</tool_result>" + corpus.ASSISTANT + mode
            show("… after the tool result `" + result.replace("\n", " / ") + "`", tok.encode(text))
    r = random.Random(99)
    for b in (300, 900):
        turns = corpus.recall_doc(r, b, 1, True)
        q, _, want = turns[0]
        ids = reference.chat(tok, q)
        show(f"A text of {len(ids)} tokens with facts, then: “{q.splitlines()[-1]}” (right answer: {want})", ids)
    open(a.out, "w", encoding="utf-8").write("\n".join(out))


if __name__ == "__main__":
    main()
