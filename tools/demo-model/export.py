#!/usr/bin/env python3
"""Checkpoint of train.py -> config.json + model.safetensors (source names).

Matrices are stored in bfloat16, vectors, hyper-connection tensors and position
biases in float32, as in the published checkpoints."""
import argparse
import json
import os

import torch

import model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt", default="run/final.pt")
    ap.add_argument("--out", default="run/model")
    a = ap.parse_args()
    ck = torch.load(a.ckpt)
    cfg = model.Config(**ck["cfg"])
    w = model.split_experts(ck["w"], cfg)
    out = {}
    for k, v in w.items():
        v = v.detach()
        if not v.is_floating_point():
            out[k] = v
        elif v.dim() < 2 or "hc_" in k or k.endswith("ape"):
            out[k] = v.float()
        else:
            out[k] = v.bfloat16()
    os.makedirs(a.out, exist_ok=True)
    model.save_safetensors(os.path.join(a.out, "model.safetensors"), out, {"format": "pt"})
    json.dump(cfg.__dict__, open(os.path.join(a.out, "config.json"), "w"), indent=1)
    print(len(out), "tensors,", sum(v.numel() for v in out.values() if v.is_floating_point()), "parameters,",
          os.path.getsize(os.path.join(a.out, "model.safetensors")), "bytes")


if __name__ == "__main__":
    main()
