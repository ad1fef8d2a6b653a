#!/usr/bin/python3
"""Float64 logits of the demo model by deepseek4_ref.py, for the prompts and positions of tests/golden/demo_logits.txt.
   demo_goldens.py DEMO.gguf FOLDER OUT.bin
The file is read from its first to its last prompt; per prompt follow, little-endian float32:
   [positions of the prompt][2048] without roundings, then [positions of the prompt][2048] with them."""
import os, subprocess, sys
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def prompts(path):
    """(name, ids, positions); all settings of a prompt have the same positions."""
    out, setting = [], 0
    lines = open(path, encoding="utf-8").read().splitlines()
    for i, line in enumerate(lines):
        word = line.split(" ")
        if word[0] == "prompt":
            out.append((word[1], lines[i + 1].replace(" ", ","), []))
            setting = 0
        elif word[0] == "setting":
            setting += 1
        elif word[0] == "at" and setting == 1:
            out[-1][2].append(int(word[1]))
    return out


def main():
    model, folder, out = sys.argv[1:]
    with open(out, "wb") as f:
        for name, ids, positions in prompts(os.path.join(HERE, "..", "golden", "demo_logits.txt")):
            npy = os.path.join(folder, "demo.npy")
            for sim in ([], ["--sim"]):
                subprocess.run([sys.executable, os.path.join(HERE, "deepseek4_ref.py"), model, ids, npy, *sim], check=True)
                f.write(np.load(npy)[positions].astype("<f4").tobytes())
            print("demo", name, positions, flush=True)


main()
