"""The watch: what an audit wraps inside its own ``with`` block, and notes."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any

import warp as wp

from treadle.launch.auditing.calls import read_bound_call, read_cached_call, read_call
from treadle.launch.auditing.events import Birth, CachedCall, Event, Place, Recording
from treadle.launch.auditing.hooks import FunctionHook
from treadle.launch.auditing.stack import find_places, frames_above, in_warp, place_of, release_tokens
from treadle.launch.bound import BoundLaunch
from treadle.launch.cache import LaunchCache
from treadle.launch.record import extents
from treadle.launch.signature import ArgumentSignature

__all__ = ["LaunchWatch"]

_clock = time.perf_counter_ns
_Original = Callable[..., Any]
_CALLER = 3
"""Frames from a method that runs around a function to the caller of the function."""
_SYNCS = ("synchronize", "synchronize_device", "synchronize_stream", "synchronize_event")


class LaunchWatch:
    """Notes each launch, graph launch and host synchronization of this thread while it is open.

    Args:
        root: Frame that the audited program is called from: what is above it does not count as its stack.
        on_event: Called before each event with its number and its stack, innermost frame first. What it raises goes
            through the program.
    """

    def __init__(self, root: FrameType | None, on_event: Callable[[int, list[FrameType], bool], None] | None = None):
        self.recording = Recording([])
        self._root = root
        self._on_event = on_event
        self._thread = threading.get_ident()
        self._runtime = wp.get_device("cpu").runtime
        self._busy = False
        self._hook_ns = 0
        self._births: dict[int, Birth] = {}
        self._graphs: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._kernels: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._capture_start = 0
        self._calls: dict[Place, int] = {}
        self._known: dict[ArgumentSignature, ArgumentSignature] = {}
        self._captured = 0
        self._cached: dict[str, Any] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> LaunchWatch:
        core = vars(sys.modules[wp.Launch.__module__])
        routes: list[tuple[Any, Any]] = [(core["launch"], self._around_launch), (wp.Launch.launch, self._around_replay)]
        routes += [(core[name], self._around_sync) for name in _SYNCS]
        routes += [(wp.array.numpy, self._around_sync), (wp.array.list, self._around_sync)]
        routes += [(wp.array.__init__, self._around_array), (core["capture_begin"], self._around_begin)]
        routes += [(core["capture_end"], self._around_end), (core["capture_launch"], self._around_graph)]
        routes += [(LaunchCache.launch, self._around_cached), (BoundLaunch.__call__, self._around_bound)]
        with ExitStack() as stack:
            for function, around in routes:
                hook = FunctionHook(function, around)
                hook.attach()
                stack.callback(hook.detach)
            stack.callback(release_tokens)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.recording.hook_ns = self._hook_ns
        self._stack.close()

    @property
    def overhead_ns(self) -> int:
        """What the watch itself has cost so far."""
        return self._hook_ns

    def drain(self, devices: list[Any]) -> None:
        """Wait for devices, and note how long that took."""
        self.recording.end_ns = start = _clock()
        self._busy = True
        try:
            for device in devices:
                wp.synchronize_device(device)
        finally:
            self._busy = False
        self.recording.drain_ns = _clock() - start

    # -- what runs around the wrapped functions ----------------------------------------------------------------------

    def _passes(self, counts: bool = False) -> bool:
        """Return whether a call is none of ours: made by another thread, or within another watched call."""
        if threading.get_ident() == self._thread:
            return self._busy
        self.recording.other_threads += counts
        return True

    def _note(self, event: Event, frames: list[FrameType], call: Callable[[], Any]) -> Any:
        """Run the original call of an event, and note the event unless the call raises."""
        events = self.recording.events
        event.hook_ns = self._hook_ns
        if self._on_event is not None:
            self._on_event(len(events), frames, event.captured)
        self._busy = True
        before = _clock()
        try:
            result = call()
        finally:
            after = _clock()
            self._busy = False
        event.cost_ns = after - before
        events.append(event)
        self._captured += event.captured
        self._hook_ns += before - event.start_ns + _clock() - after
        return result

    def _frames(self) -> list[FrameType]:
        """Return the stack of the call that is being routed, innermost frame first."""
        return list(frames_above(sys._getframe(_CALLER + 1), self._root))

    def _around_launch(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes(counts=True):
            return original(*args, **kwargs)
        started = _clock()
        try:
            call = read_call(*args, **kwargs)
            kernel_key = call["kernel"].key
        except (TypeError, AttributeError):
            return original(*args, **kwargs)  # Warp says what is wrong with it
        if not all(isinstance(given, list | tuple) for given in (*args[2:4], *map(kwargs.get, ("inputs", "outputs")))):
            args, kwargs = (), call | {name: value for name, value in kwargs.items() if name not in call}
        if call["record_cmd"]:
            return original(*args, **kwargs)
        frames = self._frames()
        place, via = find_places(frames, kernel_key, "launch")
        event = Event(place, started, via=via)
        self._describe(event, call)
        if event.device == "cpu" and not event.captured and self._is_sampled(place):
            before = _clock()
            original(*args, **kwargs | {"record_cmd": True})
            event.packing_ns = _clock() - before
        return self._note(event, frames, lambda: original(*args, **kwargs))

    def _is_sampled(self, place: Place) -> bool:
        """Return whether to measure what packing costs at a site: every third call, none that loads a module.

        The CPU runs a kernel within the launch, so that the cost of the call alone does not tell.
        """
        self._calls[place] = calls = self._calls.get(place, 0) + 1
        return calls % 3 == 0

    def _describe(self, event: Event, call: dict[str, Any]) -> None:
        """Note what a launch was called with."""
        stream, kernel = call["stream"], call["kernel"]
        device = self._runtime.get_device(call["device"]) if stream is None else stream.device
        event.device = device.alias
        event.kernel = self._kernels.setdefault(kernel, len(self.recording.events))
        event.captured = bool(device.is_capturing)
        event.taped, event.adjoint = self._runtime.tape is not None and call["record_tape"], call["adjoint"]
        if event.captured:
            return
        if device.is_cuda:
            handle = (stream or device.stream).cuda_stream
            event.stream = int(getattr(handle, "value", handle) or 0)  # a number, or a ctypes pointer
        event.dim, event.block_dim = extents(call["dim"]), call["block_dim"]
        parameters = kernel.adj.args
        event.names = tuple(parameter.label for parameter in parameters)
        values = [*call["inputs"], *call["outputs"]]
        declared = [parameter.type for parameter in parameters] + [None] * len(values)
        signatures = [ArgumentSignature.of(*pair) for pair in zip(values, declared, strict=False)]
        event.signatures = tuple(self._known.setdefault(signature, signature) for signature in signatures)
        for index, value in enumerate(values):
            if isinstance(value, wp.array):
                births = self._births.get(id(value)), self._births.get(id(_owner_of(value)))
                if births != (None, None):
                    event.births[index] = births

    def _around_replay(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes(counts=True):
            return original(*args, **kwargs)
        started, frames = _clock(), self._frames()
        command = args[0]
        place, via = find_places(frames, command.kernel.key, "replay")
        event = Event(place, started, via=via, device=command.device.alias, captured=bool(command.device.is_capturing))
        if self._cached is not None:
            self._describe(event, self._cached)
        return self._note(event, frames, lambda: original(*args, **kwargs))

    def _around_cached(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes():
            return original(*args, **kwargs)
        started = _clock()
        try:
            call = read_cached_call(*args, **kwargs)
        except (TypeError, AttributeError):
            return original(*args, **kwargs)  # Python says what is wrong with it
        given = {name: value for name, value in kwargs.items() if name not in ("kernel", "dim", "inputs", "outputs")}
        what = (args[0], call["kernel"], call["dim"], call["inputs"], call["outputs"], *args[5:])
        return self._run_cached(started, call, lambda: original(*what, **given))

    def _around_bound(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes():
            return original(*args, **kwargs)
        started = _clock()
        try:
            call = read_bound_call(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # Python says what is wrong with it
        return self._run_cached(started, call, lambda: original(*args, **kwargs))

    def _run_cached(self, started: int, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Run a call of a launch cache; what it costs around the recorded command counts as the launch's, too."""
        count, self._cached = len(self.recording.events), call
        self._hook_ns += _clock() - started
        own, before = self._hook_ns, _clock()
        try:
            result = run()
        finally:
            spent, self._cached = _clock() - before - (self._hook_ns - own), None
        new = self.recording.events[count:]
        if len(new) == 1 and new[0].place.kind == "replay":
            new[0].packing_ns = max(spent - new[0].cost_ns, 0)
            new[0].cost_ns = max(spent, new[0].cost_ns)
            new[0].cached = CachedCall(call["find_stats"](), call["dynamic"])
        return result

    def _around_graph(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes(counts=True):
            return original(*args, **kwargs)
        started, frames = _clock(), self._frames()
        graph = args[0] if args else kwargs["graph"]
        size = self._graphs.get(graph, 0)
        place, via = find_places(frames, f"graph of {size} launches" if size else "graph", "graph")
        event = Event(place, started, via=via, device=graph.device.alias, size=size)
        return self._note(event, frames, lambda: original(*args, **kwargs))

    def _around_sync(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes():
            return original(*args, **kwargs)
        started, frames = _clock(), self._frames()
        place, via = find_places(frames, f"wp.{original.__qualname__}()", "sync")
        return self._note(Event(place, started, via=via), frames, lambda: original(*args, **kwargs))

    def _around_begin(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._capture_start = self._captured
        return original(*args, **kwargs)

    def _around_end(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        graph = original(*args, **kwargs)
        self._graphs[graph] = self._captured - self._capture_start
        return graph

    def _around_array(self, original: _Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._passes():
            return original(*args, **kwargs)
        original(*args, **kwargs)
        started = _clock()
        array = args[0]
        if array.ptr is not None:
            frames = frames_above(sys._getframe(_CALLER), self._root)
            place = next((place_of(frame, "", "array") for frame in frames if not in_warp(frame)), None)
            if place is not None:
                self._births[id(array)] = Birth(len(self.recording.events), array.deleter is not None, place)
        self._hook_ns += _clock() - started


def _owner_of(array: wp.array) -> wp.array:
    """Return the array that a view is a view of."""
    while isinstance(owner := getattr(array, "_ref", None), wp.array):
        array = owner
    return array
