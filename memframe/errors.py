"""Every error that memframe raises, as one tree.

::

    MemframeError
    ├── ConfigError            ValueError       a setting is missing, malformed or unsafe
    ├── NoAnswerError          ConnectionError  the service could not be reached, or went silent
    ├── DecisionTimeout        TimeoutError     the user has not decided in time
    ├── OAuthError             ValueError       the authorization was denied, mixed up or used twice
    ├── ServiceError           RuntimeError     the service answered with an error status
    │   ├── AuthError              401          the key or token is not accepted
    │   ├── AccessError            403          no access, or no longer
    │   ├── NotFoundError          404          LookupError: there is no such thing
    │   ├── ConflictError          409, 412     the resource is in another state than the request needs
    │   ├── InvalidError           400, 422     the service refuses the request as malformed
    │   └── RateLimitError         429          too many requests
    ├── ProtocolError          RuntimeError     the answer breaks the specification
    │   └── AnswerTooLargeError                 the answer is too large to accept; a smaller page may fit
    ├── SealError              ValueError       content cannot be sealed or opened
    ├── FrameError             ValueError       a frame or an archive is not of the expected form
    ├── PlanError              ValueError       a plan cannot be made from the input, or cannot be carried out
    │   └── StalePlanError                      the memories have changed since the plan was made
    ├── JournalError           OSError          the record of a run cannot be written or read
    └── IncompleteRunError     RuntimeError     a run left rows unwritten; carries the run

Catch `MemframeError` for all of them, or the builtin listed next to the name. Every message names the thing,
the cause and the next step, and never contains a secret. If the next step differs between Python and the
command line, `MemframeError.hint` has both.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from rapidfuzz.distance import OSA


@dataclass(frozen=True)
class Hint:
    """The next step, for callers of the package and for the command line.

    Attributes
    ----------
    python : str
        Words for callers of the package; they end the message of the error.
    shell : str
        Words for the command line, which shows them instead.

    Examples
    --------
    >>> error = PlanError("the plan deletes 12 memories", hint=Hint("pass confirm=12", "give --confirm 12"))
    >>> print(error, error.for_shell(), sep="\\n")
    the plan deletes 12 memories: pass confirm=12
    the plan deletes 12 memories: give --confirm 12
    """

    python: str
    shell: str

    def __add__(self, other: Hint | str) -> Hint:
        also = Hint(other, other) if isinstance(other, str) else other
        return Hint(self.python + also.python, self.shell + also.shell)


def resume_hint(journal: object) -> Hint:
    """Return the hint that says how to continue the run of a journal.

    >>> resume_hint("a b.journal").shell
    "memframe resume 'a b.journal' continues it"
    """
    path = str(journal)
    return Hint(
        f"resume_run(access, {path!r}) continues it", f"memframe resume {shlex.quote(path)} continues it"
    )


def describe_install(extra: str) -> str:
    """Return how to install an extra: from a clone, because no package index has memframe.

    >>> describe_install("service")
    "pip install '.[service]' in a clone of memframe"
    """
    return f"pip install '.[{extra}]' in a clone of memframe"


class MemframeError(Exception):
    """Base class of all errors that memframe raises on purpose.

    Attributes
    ----------
    hint : Hint or None
        The next step, if it differs between Python and the command line.
    """

    hint: Hint | None = None

    def __init__(self, message: str = "", *, hint: Hint | None = None) -> None:
        super().__init__(message if hint is None else f"{message}: {hint.python}")
        if hint is not None:
            self.hint = hint

    def for_shell(self) -> str:
        """Return the message with the next step as a command."""
        text = str(self)
        return text if self.hint is None else text.removesuffix(self.hint.python) + self.hint.shell


class ConfigError(MemframeError, ValueError):
    """A setting is missing, malformed or unsafe."""


class NoAnswerError(MemframeError, ConnectionError):
    """The service could not be reached, or stopped in the middle of an answer.

    Attributes
    ----------
    sent : bool
        True if the request may have arrived, so that a write may have been carried out. False if nothing was
        sent.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class DecisionTimeout(MemframeError, TimeoutError):  # noqa: N818 - the field says "timeout", not "timeout error"
    """The user did not decide on an access request in time."""


class OAuthError(MemframeError, ValueError):
    """The authorization was denied, belongs to another attempt, or was used twice.

    Attributes
    ----------
    code : str
        The reason, for programs: ``access_denied`` and the other codes of RFC 6749, or memframe's own
        ``state_mismatch``, ``code_missing``, ``not_an_answer``, ``link_pasted``, ``issuer_mismatch``,
        ``no_answer``.
    """

    def __init__(self, message: str, *, code: str, hint: Hint | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class ServiceError(MemframeError, RuntimeError):
    """The service answered with an error status.

    Attributes
    ----------
    status : int or None
        HTTP status; None if no request was sent.
    code : str or None
        The machine-readable code of the service's problem document (RFC 9457), if it sent one.
    endpoint : str or None
        Method and path template of the call, such as ``GET /tags/{tag_id}``.
    detail : str or None
        The message of the service, made safe to print.
    retry_after_s : float or None
        Seconds to wait before the next request, if the service stated them.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        endpoint: str | None = None,
        detail: str | None = None,
        retry_after_s: float | None = None,
        hint: Hint | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.endpoint = endpoint
        self.detail = detail
        self.retry_after_s = retry_after_s


class AuthError(ServiceError):
    """401: the API key, client secret or token is refused."""


class AccessError(ServiceError):
    """403: this account has no access, or no longer has it."""


class NotFoundError(ServiceError, LookupError):
    """404: not found, or it belongs to someone else.

    Attributes
    ----------
    api_url : str or None
        Address of the API, if it was requested without ``/api/v1``.
    """

    api_url: str | None = None


class ConflictError(ServiceError):
    """409 or 412: the resource is not in the state that the request needs."""


class InvalidError(ServiceError):
    """400 or 422: the service refuses the request as malformed."""


class RateLimitError(ServiceError):
    """429: too many requests, even after waiting as requested."""


class ProtocolError(MemframeError, RuntimeError):
    """The answer violates the specification: no JSON, a missing field, a repeated cursor."""


class AnswerTooLargeError(ProtocolError):
    """One response is larger than memframe accepts; a smaller page may help."""


class SealError(MemframeError, ValueError):
    """Content cannot be sealed or opened: wrong key, unknown layout, or damage."""


class FrameError(MemframeError, ValueError):
    """A frame or an archive is not of the expected form."""


class PlanError(MemframeError, ValueError):
    """A plan cannot be made from the input, or cannot be carried out."""


class StalePlanError(PlanError):
    """The memories have changed since the plan was made: make a new plan."""


class JournalError(MemframeError, OSError):
    """The journal of a run cannot be written or read; nothing is sent without one."""


class IncompleteRunError(MemframeError, RuntimeError):
    """A run left rows rejected, in conflict, unknown or unsent.

    Attributes
    ----------
    run : memframe.apply.Run
        The outcomes of all rows, and the journal to resume from.
    """

    def __init__(self, message: str, *, run: object, hint: Hint | None = None) -> None:
        super().__init__(message, hint=hint)
        self.run = run


def check_kind(name: str, value: object, *kinds: type, error: type[MemframeError] = ConfigError) -> None:
    """Refuse an argument of another type, and say how to get the right one.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : object
    kinds : type
        Accepted types; the message asks for the first.
    error : type
        Class of the error.

    Examples
    --------
    >>> check_kind("edited", [{"id": "m1"}], type("DataFrame", (), {}))
    Traceback (most recent call last):
    memframe.errors.ConfigError: edited is a list, not a pandas DataFrame: pd.DataFrame(records) makes one
    """
    if isinstance(value, kinds):
        return
    wanted, usual_way = _WANTED[kinds[0].__name__]
    way = _WAYS.get((kinds[0].__name__, type(value).__name__), usual_way)
    if kinds[0].__name__ == "DataFrame" and hasattr(value, "to_pandas"):  # of Polars, Arrow, Dask
        way = ".to_pandas() converts it"
    raise error(f"{name} is {kind_of(value)}, not {wanted}: {way}")


_WANTED = {
    "Client": ("a Client", "connect() makes one"),
    "Access": ("an Access", "open_access(client, request_id) opens one"),
    "DataFrame": ("a pandas DataFrame", "load_memories(access) loads one"),
    "Plan": ("a Plan", "plan_changes(access, edited) makes one"),
    "Run": ("a Run, or the path of its journal", "apply_plan(access, plan) gives one"),
    "Audit": ("an Audit, or the path of one", "audit_memories(memories) makes one"),
    "DrawnAudit": ("an Audit", "audit_memories(memories) makes one"),
    "AccessRequest": ("an AccessRequest or its id", "load_access_requests(client) lists them"),
    "str": ("a path", "pass a str or a Path"),
    "Policy": ("a memframe.Policy or its path", "Policy.load(path) reads one"),
}
"""Types of arguments in words, and the usual way to get one."""

_FILE, _RECORDS, _CHOSEN = (
    "load_archive(path) reads one from a file",
    "pd.DataFrame(records) makes one",
    "select rows with memories[mask], and columns with memories[[name]]",
)
_WAYS = {
    **dict.fromkeys([("DataFrame", kind) for kind in ("str", "PosixPath", "WindowsPath")], _FILE),
    **dict.fromkeys([("DataFrame", kind) for kind in ("list", "tuple", "dict", "generator")], _RECORDS),
    ("DataFrame", "Series"): _CHOSEN,
    ("DataFrame", "Audit"): "pass audit.memories or audit.findings",
    ("DataFrame", "Run"): "pass run.outcomes",
    ("DataFrame", "Plan"): "plan.changes shows the plan as one; apply_plan(access, plan) applies it",
    ("Plan", "PosixPath"): "Plan.load(path) reads one from a file",
    ("Plan", "WindowsPath"): "Plan.load(path) reads one from a file",
    ("Plan", "str"): "Plan.load(path) reads one from a file",
    ("Audit", "DataFrame"): "audit_memories(memories) makes one of memories",
}
"""Better ways, by the wanted type and the given one."""


def find_nearest(name: str, known: Iterable[str]) -> str:
    """Find the known name that is most similar to an unknown one, for the message that refuses it.

    >>> find_nearest("deletes", ["create", "patch", "delete"])
    'delete'
    """
    return min(known, key=lambda one: OSA.distance(name.lower(), one.lower()))


def kind_of(value: object) -> str:
    """Name the type of a value, with its library if that is neither ours nor Python's.

    >>> kind_of("text"), kind_of(3.5), kind_of(None)
    ('a str', 'a float', 'None')
    """
    if value is None:
        return "None"
    library = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    is_familiar = library in ("builtins", "memframe", "pathlib")
    full_name = name if is_familiar else f"{library} {name}"
    return f"{'an' if is_familiar and name[0] in 'AEIOaeio' else 'a'} {full_name}"
