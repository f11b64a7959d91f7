"""Values that never print, pickle or compare in the open."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, NoReturn, ParamSpec, Self, TypeVar

from memframe.errors import ConfigError, MemframeError

MASK = "••••••"
"""Replaces a hidden text."""


V = TypeVar("V", str, bytes)


class _Hidden(Generic[V]):
    """A value that only `reveal` shows, kept outside of any ``__dict__``."""

    __slots__ = ("__value",)

    def __init__(self, value: V) -> None:
        self.__value: V = value

    def reveal(self) -> V:
        """Return the value."""
        return self.__value

    def __bool__(self) -> bool:
        return bool(self.__value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return hmac.compare_digest(_bytes_of(self.__value), _bytes_of(other.reveal()))

    __hash__ = None  # type: ignore[assignment]  # a hash would be a fingerprint that can be printed

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def _bytes_of(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")


class Secret(_Hidden[str]):
    """Secret text, shown only by `reveal`.

    ``repr``, ``str`` and formatting give a mask. Pickling and conversion to JSON are refused, comparison takes
    constant time, and the value is not in ``__dict__``. Tracebacks with local variables, notebook output and
    saved frames therefore do not reveal it.

    Parameters
    ----------
    value : str
        The secret text.

    Notes
    -----
    Python cannot erase memory: anyone who can read the memory of this process can read the value.

    Examples
    --------
    >>> key = Secret("correct horse")
    >>> key
    Secret(••••••)
    >>> f"{key}"
    '••••••'
    >>> key.reveal()
    'correct horse'
    >>> key == Secret("correct horse")
    True
    """

    __slots__ = ()

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"a Secret holds str, not {type(value).__name__}")
        super().__init__(value)

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled; pass the text from .reveal() if you have to transfer it")


class SecretBytes(_Hidden[bytes]):
    """Body of a request or a response, which only `reveal` shows.

    Bodies hold keys and tokens, which a traceback with local variables would print. No copy is made, because a page of
    memories is large.

    Parameters
    ----------
    value : bytes
        The body.

    Examples
    --------
    >>> body = SecretBytes(b'{"token": "t"}')
    >>> body, len(body)
    (<14 bytes>, 14)
    >>> body.reveal()
    b'{"token": "t"}'
    """

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.reveal())

    def __repr__(self) -> str:
        return f"<{len(self):,} bytes>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the body of a request or an answer cannot be pickled, as it may contain secrets")


T = TypeVar("T")
P = ParamSpec("P")


def hide_frames(do: Callable[P, T]) -> Callable[P, T]:
    """Remove frames that hold secrets in the open from the traceback of foreign exceptions, above all of Ctrl-C.

    A traceback with local variables (of rich, or of IPython after ``%xmode Verbose``) would print headers and bodies.
    Errors of memframe keep their traceback, because they are raised where no variable holds a secret.

    Examples
    --------
    >>> @hide_frames
    ... def wait():
    ...     token = "in the open"
    ...     raise KeyboardInterrupt
    >>> try:
    ...     wait()
    ... except KeyboardInterrupt as stop:
    ...     print(extract_tb(stop.__traceback__)[-1].name)
    call
    """

    @wraps(do)
    def call(*args: P.args, **options: P.kwargs) -> T:
        try:
            return do(*args, **options)
        except MemframeError:
            raise
        except BaseException as error:  # any of them would carry frames that hold secrets
            broken = error
        if isinstance(broken, Exception):  # raised by a signal handler, or a bug of ours
            place = extract_tb(broken.__traceback__)[-1]
            broken.add_note(f"It was raised at {Path(place.filename).name}:{place.lineno}.")
        broken.__cause__ = broken.__context__ = None
        raise broken.with_traceback(None)

    return call


def as_secret_if_text(value: T) -> T | Secret:
    """Turn text into a `Secret` and return anything else unchanged, for arguments that are not checked yet.

    Assign the result to the argument's own name, so that no variable holds the text for a traceback to print.
    """
    return Secret(value) if isinstance(value, str) else value


def as_secret(value: str | Secret) -> Secret:
    """Turn text or a `Secret` into a `Secret`."""
    return value if isinstance(value, Secret) else Secret(value)


def secret_from_wire(kind: type, value: Any) -> Any:
    """Decode text as a `Secret` where a struct says so (msgspec ``dec_hook``)."""
    if kind is Secret:
        if not isinstance(value, str):
            raise TypeError("Expected `str`")  # the decoder adds the place
        return Secret(value)
    raise NotImplementedError(f"no wire form for {kind.__name__}")


def secret_to_wire(value: Any) -> str:
    """Encode a `Secret` as its text (msgspec ``enc_hook``), for request bodies only."""
    if isinstance(value, Secret):
        return value.reveal()
    raise ConfigError(
        f"a value of type {type(value).__name__} has no form in JSON: pass text, numbers or None"
    )
