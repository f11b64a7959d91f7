"""The last section: the access is opened, and the memories are loaded."""

from __future__ import annotations

from typing import Any

import pandas as pd

from memframe.panel import markup
from memframe.panel.desk import Desk, Moment
from memframe.panel.fields import button, html, show
from memframe.panel.section import Section
from memframe.showing import number_of, printable

N_PREVIEWED = 5
MAX_CELL = 80


class Loading(Section):
    """Counts, and on demand a preview: what it shows is saved with the notebook, like any output."""

    number, title = 5, "Load the memories"

    def __init__(self, desk: Desk) -> None:
        self._told, self._preview = html(), html()
        self._is_previewed = False
        self._load = button(desk, "Load the memories", lambda: desk.start(desk.open), "primary")
        self._look = button(desk, "Show a preview", self._look_clicked)
        self._back = button(desk, "Back", desk.go_back)
        super().__init__(desk, [self._told, self._preview], [self._load, self._look, self._back])

    def draw_body(self, moment: Moment) -> None:
        stand = moment.stand
        is_loaded = stand.memories is not None
        self._is_previewed = self._is_previewed and is_loaded
        self._told.value = _told(moment)
        self._load.description = "Load again" if is_loaded else "Load the memories"
        self._look.description = "Hide the preview" if self._is_previewed else "Show a preview"
        show(self._look, is_loaded)
        self._preview.value = (
            "" if stand.memories is None or not self._is_previewed else _preview(stand.memories)
        )

    def news(self, moment: Moment) -> str:
        if moment.stand.doing == "load":
            return markup.under_way(f"Loading: {number_of(moment.n_loaded, 'memory', 'memories')} so far …")
        return super().news(moment)

    def _look_clicked(self) -> None:
        self._is_previewed = not self._is_previewed
        self.desk.redraw()


def _told(moment: Moment) -> str:
    stand = moment.stand
    if stand.memories is None:
        return markup.paragraph(
            "The access is open, as `panel.access`."
            if stand.access
            else "The user has approved. The memories are decrypted here, in this kernel."
        )
    return markup.paragraph(_counts(stand.memories, stand.tags)) + _damaged(stand.memories)


def _counts(memories: pd.DataFrame, tags: pd.DataFrame | None) -> str:
    years = memories.created_at.dropna().dt.year.unique()
    span = (
        f" of {min(years)}" if len(years) == 1 else f" of {min(years)} to {max(years)}" if len(years) else ""
    )
    n_tags = 0 if tags is None else len(tags)
    loaded = number_of(len(memories), "memory", "memories")
    return f"{loaded}{span} in `panel.memories`, and {number_of(n_tags, 'tag', 'tags')} in `panel.tags`."


def _damaged(memories: pd.DataFrame) -> str:
    n_damaged = int(memories.content_error.notna().sum())
    if not n_damaged:
        return ""
    return markup.alert(
        f"{n_damaged:,} of {len(memories):,} could not be decrypted:", "content_error says why."
    )


def _preview(memories: pd.DataFrame) -> str:
    shown = memories.head(N_PREVIEWED)
    rows = zip(shown.created_at, shown.title, shown.content, strict=True)
    return markup.table(
        ["created", "title", "content"],
        [[_cell(time, "%Y-%m-%d"), *map(_cell, texts)] for time, *texts in rows],
    )


def _cell(value: Any, form: str = "") -> str:
    """A cell as short text; nothing where there is none."""
    text = "" if pd.isna(value) else " ".join(printable(format(value, form)).split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"
