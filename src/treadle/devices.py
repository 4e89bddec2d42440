"""Which device a simulation runs on."""

from __future__ import annotations

from treadle.errors import ConfigError

__all__ = ["resolve_device", "usable_devices"]


def resolve_device(device: str) -> str:
    """Return the Warp name of a device, ``"cpu"`` or ``"cuda:N"``.

    Args:
        device: ``"auto"`` (the first GPU that both Warp and torch can use, else the CPU), ``"cpu"``, ``"cuda"`` or
            ``"cuda:N"``.

    Raises:
        ConfigError: There is no such device here, or torch can't use it; the message lists those that can be used.
    """
    usable = usable_devices()
    if device == "auto":
        return next((name for name in usable if name != "cpu"), "cpu")
    name = "cuda:0" if device == "cuda" else device
    if name not in usable:
        reason = f", which {_torch_name()} can't use" if name in _warp_devices() else ""
        raise ConfigError(f"device is {device!r}{reason}; allowed here: {', '.join(['auto', *usable])}")
    return name


def usable_devices() -> list[str]:
    """Return the devices that both Warp and torch can use, or Warp alone where torch is not installed."""
    count = _torch_gpu_count()
    return [name for name in _warp_devices() if name == "cpu" or count is None or int(name.split(":")[1]) < count]


def _warp_devices() -> list[str]:
    import warp as wp

    wp.init()
    return [str(device) for device in wp.get_devices()]


def _torch_gpu_count() -> int | None:
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _torch_name() -> str:
    import torch

    return f"torch {torch.__version__}" + ("" if torch.version.cuda else " (built without CUDA)")
