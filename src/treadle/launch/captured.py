"""What a graph under capture uses, noted by the launch caches of its owner."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from treadle.launch.errors import StaleArgumentError
from treadle.launch.signature import ArgumentSignature, leaves

__all__ = ["CaptureLog", "CapturedLaunches"]


@dataclass(frozen=True)
class _CapturedLaunch:
    owner: str
    kernel: wp.Kernel
    site: Hashable
    args: list[Any]
    signatures: list[ArgumentSignature]


class CapturedLaunches:
    """The launches that went into one graph. It keeps their arguments alive for as long as the graph lives."""

    def __init__(self) -> None:
        self._launches: list[_CapturedLaunch] = []
        self._alive: list[Any] = []

    def note(self, owner: str, kernel: wp.Kernel, site: Hashable, args: Sequence[Any]) -> None:
        """Remember a launch of the graph."""
        args = list(args)
        self._launches.append(_CapturedLaunch(owner, kernel, site, args, [ArgumentSignature.of(a) for a in args]))
        self._alive.extend(leaf for arg in args for leaf in leaves(arg))

    @property
    def kernel_names(self) -> list[str]:
        """Names of the kernels, in launch order."""
        return [launch.kernel.key for launch in self._launches]

    def verify(self) -> None:
        """Compare the arguments with what the graph has baked in.

        Raises:
            StaleArgumentError: An argument was given other storage, or a struct other content, since the capture.
        """
        for launch in self._launches:
            parameters = launch.kernel.adj.args
            for parameter, recorded, arg in zip(parameters, launch.signatures, launch.args, strict=True):
                signature = ArgumentSignature.of(arg)
                if signature != recorded:
                    raise StaleArgumentError(
                        owner=launch.owner,
                        kernel=launch.kernel.key,
                        site=launch.site,
                        argument=parameter.label,
                        recorded=f"{recorded} in a captured graph",
                        received=str(signature),
                    )


class CaptureLog:
    """Shared by the caches of one owner: ``open`` is where launches are noted while a graph is being captured."""

    def __init__(self) -> None:
        self.open: CapturedLaunches | None = None
