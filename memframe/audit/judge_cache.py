"""Answers of a judge that were given before, sealed on this machine: nobody pays twice for the same question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from memframe.errors import JournalError
from memframe.files import atomic_file, private_folder
from memframe.keystore import LocalCipher, open_local_cipher, state_folder

if TYPE_CHECKING:
    from memframe.audit.judge import Answer, Question

_MAX_QUESTIONS = 20_000

Said = tuple[int, str, str, float]
"""The fields of an answer."""


class Cache:
    """Answers by the hash of a masked question, of one model with one prompt.

    One file for each model and prompt, sealed with the data key as journals are: hashes of short texts could be
    guessed, so that they are not written in the open either.
    """

    def __init__(self, path: Path, cipher: LocalCipher) -> None:
        self._path, self._cipher = path, cipher
        self._answers = self._read()

    @classmethod
    def of(cls, model: str, prompt: str) -> Self:
        """Open the cache of a model with a prompt, in the user's state folder."""
        name = hashlib.sha256(msgspec.json.encode([model, prompt])).hexdigest()[:32]
        return cls(private_folder(state_folder() / "judge") / f"{name}.sealed", open_local_cipher())

    def get(self, question: Question) -> dict[int, Said] | None:
        """Return the answers to a question by place, if there are any."""
        return self._answers.get(_hash(question))

    def put(self, answered: Mapping[Question, Mapping[int, Answer]]) -> None:
        """Keep answers, and write all of them."""
        self._answers |= {
            _hash(question): {
                place: (answer.number, answer.verdict, answer.reason, answer.confidence)
                for place, answer in answers.items()
            }
            for question, answers in answered.items()
        }
        kept = dict(list(self._answers.items())[-_MAX_QUESTIONS:])
        sealed = self._cipher.seal(msgspec.msgpack.encode(kept), bound_to=self._bound_to)
        with atomic_file(self._path) as file:
            file.write(sealed)

    @property
    def _bound_to(self) -> str:
        return f"answers of a judge, {self._path.stem}"

    def _read(self) -> dict[bytes, dict[int, Said]]:
        try:
            opened = self._cipher.open(self._path.read_bytes(), bound_to=self._bound_to)
            return msgspec.msgpack.decode(opened, type=dict[bytes, dict[int, Said]])
        except FileNotFoundError:
            return {}
        except (JournalError, msgspec.DecodeError):
            return {}  # damaged, or sealed with a key that is gone: the questions are asked again


def _hash(question: Question) -> bytes:
    return hashlib.sha256(
        msgspec.json.encode([question.kind, question.newer, question.older, question.said_at])
    ).digest()
