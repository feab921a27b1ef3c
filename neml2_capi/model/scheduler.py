"""Devices over which a model spreads its points."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.inspection import (
    RUNTIME_NAMES,
    RUNTIMES,
    code_of,
    counted,
    device_code,
    inspected,
    sized,
)
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.strings import require_path
from neml2_capi._ffi.views import device_text

if TYPE_CHECKING:
    from neml2_capi._document import Node

__all__ = ["Device", "Scheduler"]


class Device(NamedTuple):
    """A device of a scheduler: what it is, and how many points it is given.

    Of devices with capacity left the one of the greatest `priority` gets the next sub-batch, and
    the first one if they are equal.
    """

    #: "cpu", "cuda" or "cuda:1".
    device: str
    #: The points of a sub-batch. 0, which is for a scheduler of one device, has no bound.
    batch_size: int = 0
    #: The points that it may be given at once, at least `batch_size`; 0: twice `batch_size`.
    capacity: int = 0
    #: Any finite number.
    priority: float = 1.0
    #: As a Model's.
    runtime: str = "auto"


class Scheduler(Handle):
    """Devices over which a model spreads the points of every evaluation, in sub-batches.

        from neml2_capi import Device, Model, Scheduler

        node = Scheduler([Device("cpu", batch_size=512), Device("cuda:0", 4096, priority=2.0)])
        model = Model("aoti/viscoplastic", scheduler=Scheduler("cpu", batch_size=512))

    The model is otherwise like any other. With one device, the calling thread evaluates sub-batch
    after sub-batch; with several, each has a thread of its own, and results differ by as much as
    the devices' do. There is one CPU at most, or one for each runtime that is named.

    A copy, and a pickle, have the same devices. One thread at a time may use a scheduler; models
    that were loaded with it do not need it any more.
    """

    def __init__(
        self,
        devices: str | Device | Iterable[Device],
        batch_size: int = 0,
        *,
        runtime: str = "auto",
    ) -> None:
        """Take several devices, or one, which may be a name: Scheduler("cpu", 512).

        Parameters
        ----------
        devices
            The devices, or the name of one.
        batch_size
            The points of a sub-batch, for one device by its name; 0 has no bound.
        runtime
            As a Model's, for one device by its name.

        Raises
        ------
        FatalError
            A device does not fit the others, or these arguments do not fit the devices.
        """
        owner = owned("scheduler")
        check(lib.neml2_scheduler_create(owner))
        super().__init__(owner)
        if isinstance(devices, str):
            devices = [Device(devices, batch_size, runtime=runtime)]
        elif batch_size or runtime != "auto":
            raise FatalError(
                "batch_size and runtime are for one device by its name: give each Device its own",
                lib.NEML2_ERROR_ARGUMENT,
                "batch_size" if batch_size else "runtime",
            )
        for device in [devices] if isinstance(devices, Device) else devices:
            self._add(device)

    def _add(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise _not_a("Device", device, "devices")
        kind, index = device_code(device.device)
        given = sized(
            "neml2_device",
            batch_size=_whole(device.batch_size, "batch_size"),
            capacity=_whole(device.capacity, "capacity"),
            priority=float(device.priority),
            device=kind,
            device_index=index,
            runtime=code_of("runtime", device.runtime, RUNTIMES),
        )
        check(lib.neml2_scheduler_add(self._open()[0], given))

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, with the capacities that they have."""
        owner = self._open()
        positions = counted(lib.neml2_scheduler_count, owner[0])
        return tuple(_read(owner, index) for index in positions)

    def keep_rank(self, local_rank: int, local_size: int) -> Scheduler:
        """Keep one device, for a process of many on one node, as MPI's.

        Several processes may share a device.

        Parameters
        ----------
        local_rank
            The number of this process on its node, from 0; its device has this number modulo
            their count.
        local_size
            How many processes the node has.

        Returns
        -------
        Scheduler
            The same scheduler.

        Raises
        ------
        FatalError
            There are fewer processes than devices, of which some would be idle.
        """
        rank, size = _whole(local_rank, "local_rank"), _whole(local_size, "local_size")
        check(lib.neml2_scheduler_keep_rank(self._open()[0], rank, size))
        return self

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], section: str = "scheduler") -> Scheduler:
        """Read a table of a TOML file: one device, or a list of them.

        ```toml
        [[scheduler.devices]]
        device = "cpu"
        batch_size = 512

        [[scheduler.devices]]
        device = "cuda:0"
        batch_size = 4096
        capacity = 8192
        priority = 2.0
        ```

        The keys are the attributes of Device. Python 3.10 needs tomli.

        Parameters
        ----------
        path
            The file.
        section
            The name of the table, with dots for a table in another.

        Returns
        -------
        Scheduler
            A new scheduler of these devices.

        Raises
        ------
        FatalError
            The file cannot be read, or a key of it is wrong, which the message names.
        """
        from pathlib import Path

        from neml2_capi._document import read_toml

        require_path(path)
        node = read_toml(Path(path))
        for name in section.split("."):
            node = node.required(name, "the table of a scheduler")
        return scheduler_of(node)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self), (self.devices,)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}, closed>" if self.closed else f"{name}({list(self.devices)!r})"


def scheduler_of(table: Node) -> Scheduler:
    """Read a table; FatalError by its key."""
    if "devices" in table:
        table.table(("devices",))
        nodes = table["devices"].tables("a list of tables, one for each device")
    else:
        nodes = [table]
    scheduler = Scheduler(())
    for node in nodes:
        device = _device(node)
        try:
            scheduler._add(device)
        except FatalError as error:
            key = node.find(error.subject) or node
            raise key.refuse(str(error), error.status) from error
    return scheduler


def _device(node: Node) -> Device:
    node.table(("device", "batch_size", "capacity", "priority", "runtime"))
    known: dict[str, Any] = {
        "device": node.required("device", '"cpu", "cuda" or "cuda:1"').text('"cpu" or "cuda:1"')
    }
    for name in ("batch_size", "capacity"):
        if name in node:
            known[name] = node[name].count("a number of points, 1 at least")
    if "priority" in node:
        known["priority"] = node["priority"].number()
    if "runtime" in node:
        known["runtime"] = node["runtime"].text()
    return Device(**known)


def _read(owner: Any, index: int) -> Device:
    info = inspected("neml2_device", lib.neml2_scheduler_inspect, owner[0], index)
    device = device_text((info.device, info.device_index))
    runtime = RUNTIME_NAMES[info.runtime]
    return Device(device, info.batch_size, info.capacity, info.priority, runtime)


def _whole(value: Any, name: str) -> int:
    """An integer, of numpy for example, in 64 bits."""
    try:
        number = value.__index__()
    except AttributeError:
        raise FatalError(
            f"{name} must be a whole number; got {value!r}", lib.NEML2_ERROR_ARGUMENT, name
        ) from None
    if abs(number) >= 2**63:
        raise FatalError(f"{name} is out of bounds: {number}", lib.NEML2_ERROR_ARGUMENT, name)
    return int(number)


def not_a_scheduler(value: Any) -> FatalError:
    """The error for a `scheduler` that is none."""
    return _not_a("Scheduler", value, "scheduler")


def _not_a(what: str, value: Any, name: str) -> FatalError:
    return FatalError(
        f"expected a neml2_capi.{what}; got {value!r}", lib.NEML2_ERROR_ARGUMENT, name
    )
