#!/usr/bin/env python3
"""plot_speed.py CSV [-o SVG] [--title T] [--width 960] [--height 540]: speeds of ds4-bench over the length of the context.

Needs two rows or more and the columns ctx_tokens, prefill_tps and gen_tps; other columns do not matter. Prefill has the left
axis, generation the right one. The default output is the CSV's name with _ts.svg.
"""
import argparse
import csv
import math
import pathlib
import sys
from xml.sax.saxutils import escape

PREFILL, GENERATION = "#2563eb", "#dc2626"
LEFT, RIGHT, TOP, BOTTOM = 70, 70, 60, 60


def round_up(value, steps=(1, 2, 2.5, 3, 4, 5, 10)):
    """The least of steps times a power of ten that is not below value."""
    if value <= 0:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return next(s * power for s in steps if s * power >= value * (1 - 1e-12))


def ticks(most, count):
    """0, step, 2 step ... up to most, about count of them."""
    step = round_up(most / count, (1, 2, 2.5, 5, 10))
    return [i * step for i in range(int(most / step + 1e-9) + 1)]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = {"ctx_tokens", "prefill_tps", "gen_tps"} - set(reader.fieldnames or [])
        if missing:
            sys.exit(f"plot_speed.py: {path} has no column {', '.join(sorted(missing))}")
        try:
            rows = [tuple(float(r[k]) for k in ("ctx_tokens", "prefill_tps", "gen_tps")) for r in reader]
        except (TypeError, ValueError):
            sys.exit(f"plot_speed.py: {path} holds a row that is no numbers")
    if len(rows) < 2:
        sys.exit(f"plot_speed.py: {path} has {len(rows)} rows; two are needed")
    return sorted(rows)


def draw(rows, title, width, height):
    right, bottom = width - RIGHT, height - BOTTOM
    most_x = max(r[0] for r in rows)
    most = [round_up(1.05 * max(r[i] for r in rows)) for i in (1, 2)]

    def x(v):
        return LEFT + (right - LEFT) * v / most_x

    def y(v, i):
        return bottom - (bottom - TOP) * v / most[i]

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{width / 2}" y="30" text-anchor="middle" font-size="18">{escape(title)}</text>']
    for v in ticks(most_x, 6):
        out.append(f'<text x="{x(v):.1f}" y="{bottom + 20}" text-anchor="middle">{v:g}</text>')
    for i, (at, anchor, colour) in enumerate(((LEFT - 8, "end", PREFILL), (right + 8, "start", GENERATION))):
        for v in ticks(most[i], 5):
            if i == 0:
                out.append(f'<path d="M{LEFT} {y(v, 0):.1f}H{right}" stroke="#e5e7eb"/>')
            out.append(f'<text x="{at}" y="{y(v, i) + 4:.1f}" text-anchor="{anchor}" fill="{colour}">{v:g}</text>')
    out.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}V{TOP}" fill="none" stroke="#6b7280"/>')
    out.append(f'<text x="{width / 2}" y="{height - 15}" text-anchor="middle">tokens of context</text>')
    for i, (name, colour) in enumerate((("prefill t/s", PREFILL), ("generation t/s", GENERATION))):
        points = " ".join(f"{x(r[0]):.1f},{y(r[i + 1], i):.1f}" for r in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<path d="M{right - 150} {TOP + 16 + 20 * i}h24" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{right - 120}" y="{TOP + 20 + 20 * i}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description="Draw the speeds that ds4-bench has measured.")
    parser.add_argument("csv")
    parser.add_argument("-o", metavar="SVG")
    parser.add_argument("--title")
    parser.add_argument("--width", type=int, default=960)
    parser.add_argument("--height", type=int, default=540)
    args = parser.parse_args()
    path = pathlib.Path(args.csv)
    out = pathlib.Path(args.o) if args.o else path.with_name(path.stem + "_ts.svg")
    out.write_text(draw(read(path), args.title or path.stem.replace("_", " "), args.width, args.height), encoding="utf-8")


if __name__ == "__main__":
    main()
