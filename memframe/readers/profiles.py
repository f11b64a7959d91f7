"""Read profiles: facts about a person as keys and values of one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memframe.display import printable
from memframe.readers.markdown import LIST_KEYS, are_messages, has_text, is_conversation, name_columns
from memframe.readers.rows import Item, Items, is_filled, read_time
from memframe.readers.source import TEXT_KEYS, Damage, Document

_SUBJECTS = (
    "about_me facts goals habits hobbies interests personality preferences profile traits user user_info user_memory "
    "user_preferences user_profile"
)
"""Keys of objects that describe a person."""

_DETAILS = (
    "age birthday city communication_style country dislikes favorite_color favourite_color gender hobbies hobby "
    "interests job language location name nickname occupation personality profession pronouns role school timezone "
    "travel_style user_name username"
)
"""Keys of single values that describe a person."""

_MIN_DETAILS = 3
"""Fewest details of a profile; package and configuration files have a name and a language, too."""


def is_profile(document: Document) -> bool:
    """Recognise an object with texts about a person, or with several entries under names of their own.

    Lists of memories in it are read as well. But an object with a list under a usual name, such as ``memories``, is a
    table, and one with messages is a conversation.
    """
    value = document.value
    if document.form != "json" or not isinstance(value, dict) or has_text(value, TEXT_KEYS):
        return False
    if any(isinstance(value.get(key), list) for key in LIST_KEYS) or is_conversation(document):
        return False
    keys = {str(key).casefold(): each for key, each in value.items()}
    if any(isinstance(keys.get(key), dict) and _holds_text(keys[key]) for key in _SUBJECTS.split()):
        return True
    has_list = any(isinstance(each, list | dict) for each in value.values())
    details = [key for key in _DETAILS.split() if isinstance(keys.get(key), str) and keys[key].strip()]
    if not has_list and len(details) >= _MIN_DETAILS:
        return True
    return len(value) > 1 and all(has_text(each, TEXT_KEYS) for each in value.values())


def _holds_text(value: Any) -> bool:
    """Return True if a value contains, at any depth, a text that is not a time."""
    inner = [value]
    while inner:
        each = inner.pop()
        if isinstance(each, str) and each.strip() and read_time(each) is None:
            return True
        if isinstance(each, dict):
            inner += each.values()
        elif isinstance(each, list):
            inner += each
    return False


_MAX_KEY_CHARS, _MAX_NAME_CHARS = 60, 200


def profile_items(documents: list[Document]) -> Items:
    """Yield each text with the keys that lead to it, which say what it is about; numbers and times are left out."""
    for document in documents:
        for name, value in _iter_values(document.value):
            place = f"{printable(name)} of {document.name}"
            about: Item = {"title": name, "entity": name}
            if isinstance(value, Damage):
                yield place, value
            elif isinstance(value, dict):
                yield place, about | name_columns(value)
            elif isinstance(value, str) and read_time(value) is None:
                yield place, about | {"content": value}
            else:
                yield place, Damage("number or time of a profile", is_entry=False)


def _iter_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values of a profile with the keys that lead to them; an entry with a text is one value."""
    inner: list[tuple[str, Any]] = [("", value)]
    while inner:
        name, each = inner.pop()
        if isinstance(each, dict) and not (name and has_text(each, TEXT_KEYS)):
            inner += [(_name_below(name, key), below) for key, below in reversed(each.items())]
        elif isinstance(each, list) and are_messages(each):
            yield from [(name, Damage("message of a conversation", is_entry=False))] * len(each)
        elif isinstance(each, list):
            inner += [(name, entry if _is_entry(entry) else _OTHER) for entry in reversed(each)]
        elif is_filled(each):
            yield name, each


def _name_below(name: str, key: str) -> str:
    return f"{name}.{key[:_MAX_KEY_CHARS]}"[:_MAX_NAME_CHARS].removeprefix(".")


_OTHER = Damage("not a list of memories", is_entry=False)


def _is_entry(value: Any) -> bool:
    return isinstance(value, str) or has_text(value, TEXT_KEYS)
