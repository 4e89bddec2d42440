"""Whether the code that a record or a graph holds is still the code that ``wp.launch`` would run."""

from __future__ import annotations

from typing import Any

import warp as wp

__all__ = ["LoadedModule"]


class LoadedModule:
    """The executable of a module that a command was recorded with.

    Warp forgets the hashes of a module, that is, replaces the dictionary that holds them, when its options change, when
    it is unloaded, and when a kernel is added to it. So one comparison of identities tells that nothing happened. Only
    where something did is the module loaded again, as ``wp.launch`` does, which mostly gives the same executable.
    """

    __slots__ = ("__weakref__", "block_dim", "device", "executable", "hashers", "module")

    def __init__(self, command: Any):
        self.module: Any = command.kernel.module
        self.device: wp.Device = command.device
        self.block_dim: int = command.block_dim
        self.executable = command.module_exec
        self.hashers = self.module.hashers

    def reload(self) -> bool:
        """Return whether the module has another executable now, and load it if so. Called where ``hashers`` differ."""
        executable = self.module.load(self.device, self.block_dim)
        if executable is not self.executable:
            return True
        self.hashers = self.module.hashers
        return False

    @property
    def changed(self) -> bool:
        """Whether the module has another executable now."""
        return self.module.hashers is not self.hashers and self.reload()
