"""The Memory Access Service itself, embedded: the API, the OAuth server, the dashboard and the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memframe.errors import describe_install

if TYPE_CHECKING:
    from memframe.service.local import LocalService, run_local

__all__ = ["LocalService", "run_local"]


def __getattr__(name: str) -> Any:
    """Import `run_local` and `LocalService` on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from memframe.service import local  # noqa: PLC0415 - the parts below must not load the whole
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"the service needs the library {missing.name}: {describe_install('service')}",
            name=missing.name,
        ) from None
    return getattr(local, name)


def __dir__() -> list[str]:
    """Return what tab completion offers."""
    return ["run_local"]
