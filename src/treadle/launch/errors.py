"""Errors of the launch layer."""

from __future__ import annotations

from treadle.errors import TreadleError

__all__ = ["AllocationError", "CaptureWarning", "LaunchError", "StaleArgumentError"]


class LaunchError(TreadleError):
    """A launch can't be recorded, bound or replayed as asked."""


class AllocationError(LaunchError):
    """A captured function that declares that it does not allocate does so (``debug`` contract)."""


class CaptureWarning(UserWarning):
    """A stage could not be captured into a graph and is replayed instead."""


class StaleArgumentError(LaunchError):
    """An argument of a replay is no longer what was recorded or captured (``debug`` contract)."""

    WAYS_OUT = (
        "Name it in dynamic=(...) if it is meant to change, give this argument set a site of its own (site=...), call "
        "invalidate() after replacing buffers, or launch it in eager mode"
    )

    def __init__(
        self,
        *,
        owner: str,
        kernel: str,
        site: object,
        argument: str,
        recorded: str,
        received: str,
        ways_out: str = WAYS_OUT,
    ):
        """Build the message from who, what was recorded, what was received and what to do."""
        self.owner, self.kernel, self.site, self.argument = owner, kernel, site, argument
        self.recorded, self.received = recorded, received
        place = f"kernel {kernel!r}" + (f", site {site!r}" if site is not None else "")
        super().__init__(
            f"{owner}: {place}: argument {argument!r} changed since it was recorded: recorded {recorded}, received "
            f"{received}. {ways_out}"
        )
