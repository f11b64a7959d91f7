"""Batches of labelled texts in voices of their own: chat, notes, lists, memories about "the user", logs of agents.

`batches/*.txt`, in the order in which they were used; the first three were written before their author had read a rule
of the detectors, the others before a round in which nothing was changed for them. Each was measured once at first
sight, and the detectors learned from it afterwards: what they give now is a guard, not a promise.

A heading ``## told`` opens a list, one text a line. What is to be found is marked: ``⟦value⟧`` in a list of secrets,
``⟦kind|value⟧`` in one of personal data.
"""

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("batches")
NAMES = ("one", "two", "three", "four", "five")
MARK = re.compile(r"⟦(?:(\w+)\|)?([^⟦⟧]+)⟧")


class Text(NamedTuple):
    """A text and what is marked in it, as (kind, start, end); the kind of a secret is empty."""

    text: str
    spans: tuple


class Batch(NamedTuple):
    """Its lists: told secrets and near-misses, personal data and near-misses."""

    told: list
    clean: list
    personal: list
    nothing: list

    def secrets(self):
        """(text, whether it holds a secret)."""
        return labelled((text.text for text in self.told), self.clean)


def labelled(positive, negative):
    return [(text, True) for text in positive] + [(text, False) for text in negative]


def read_batch(name):
    lists = read_lists((FOLDER / f"{name}.txt").read_text("utf-8"))
    return Batch(
        told=[marked(line) for line in lists["told"]],
        clean=lists["clean"],
        personal=[marked(line) for line in lists["personal"]],
        nothing=[Text(line, ()) for line in lists["nothing"]],
    )


def read_lists(text):
    lists = {}
    for line in text.splitlines():
        if line.startswith("## "):
            lists[line.removeprefix("## ")] = lines = []
        elif line:
            lines.append(line)
    return lists


def marked(line):
    text, spans, end = "", [], 0
    for mark in MARK.finditer(line):
        text += line[end : mark.start()]
        spans.append((mark[1] or "", len(text), len(text) + len(mark[2])))
        text, end = text + mark[2], mark.end()
    return Text(text + line[end:], tuple(spans))
