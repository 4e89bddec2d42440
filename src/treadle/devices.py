"""Which device a simulation runs on."""

from __future__ import annotations

from treadle.errors import ConfigError

__all__ = ["resolve_device"]


def resolve_device(device: str) -> str:
    """Return the Warp name of a device, ``"cpu"`` or ``"cuda:N"``.

    Args:
        device: ``"auto"`` (the first GPU, else the CPU), ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.

    Raises:
        ConfigError: There is no such device here; the message lists those that there are.
    """
    import warp as wp

    wp.init()
    present = [str(d) for d in wp.get_devices()]
    if device == "auto":
        return "cuda:0" if "cuda:0" in present else "cpu"
    name = "cuda:0" if device == "cuda" else device
    if name not in present:
        raise ConfigError(f"device is {device!r}; allowed here: auto, {', '.join(present)}")
    return name
