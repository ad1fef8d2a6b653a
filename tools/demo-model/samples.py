#!/usr/bin/env python3
"""Greedy answers of the finished model to a fixed list of prompts -> samples.md."""
import argparse
import os

import reference
import sample_prompts
import tokenizer


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

    def show(title, text):
        ids = tok.encode(text)
        title = title.replace("{n}", str(len(ids)))
        got = tok.decode(d.generate(ids, 220))
        out.extend([f"**{title}**", "", "```", got, "```", ""])
        print(title, "=>", got, flush=True)
        return got
    sample_prompts.run(show, lambda text: out.extend([text, ""]), a.few)
    open(a.out, "w", encoding="utf-8").write("\n".join(out))


if __name__ == "__main__":
    main()
