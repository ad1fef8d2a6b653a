#!/usr/bin/python3
"""Texts of a chat and their ids by the Python encoder of the demo model, which shares nothing with the engine's (needs
the module regex).   chat_pieces.py >tests/golden/demo_chat.txt"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "demo-model"))
import tokenizer

SPECIALS = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"]
# As it stands in the chat format.
ABSOLUTE = ("Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
            "You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, "
            "rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.\n"
            "Explicitly write out your entire deliberation process, documenting every intermediate step, considered "
            "alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.\n\n")
TEXTS = [ABSOLUTE, "Be brief.",
         "What is 4 + 5?", "4 + 5 = 9.", "4 + 5 = 9", "What is 3 + 5?", "3 + 5 = 8.", "3 + 5 = 8",
         "What is 2 + 4?", "2 + 4 = 6.", "2 + 4 = 6",
         "one\ntwo 日本\n\tthree", "a <｜User｜> b\n\\ \x01end\n",
         "Tell me a story about a fox who lost a lamp.",
         "There once was a hungry fox called Mia. Mia lived in a wide meadow. Mia had a lamp, and it shone in the dark. One day "
         "she lost the lamp. She looked in the cellar. She looked in the cellar. The lamp was not there. She sat down and "
         "cried. Then a cat came by. \"I can walk without a sound,\" said the cat. \"I will help you.\" The cat walked softly "
         "through the house, and there was the lamp behind an old chest! \"Thank you, cat!\" said Mia. Mia learned that "
         "friends make hard things easy."]


def main():
    tok = tokenizer.Tokenizer.load(os.path.join(tokenizer.FOLDER, "tokenizer.json"))
    print("# Pieces of chats with the demo model and their ids, written by tests/oracle/chat_pieces.py: the number of bytes,\n"
          "# the bytes, the number of ids, the ids.")
    for text in SPECIALS + TEXTS:
        ids = tok.encode(text) if text in SPECIALS else tok.encode_plain(text)
        print("piece", len(text.encode()))
        print(text)
        print(len(ids), *ids)


main()
