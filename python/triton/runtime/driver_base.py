"""The base of all drivers."""


class DriverBase:
    """What runs kernels on one kind of device: the base of the drivers in `triton.backends.backends`."""

    @staticmethod
    def is_active():
        """Can kernels run on such a device in this process?"""
        raise NotImplementedError

    def get_current_target(self):
        """The `GPUTarget` that kernels for the current device are compiled for."""
        raise NotImplementedError

    def get_active_torch_device(self):
        """The current device, as torch names it."""
        raise NotImplementedError


class GPUDriver(DriverBase):
    """The base of those whose device is a GPU."""
