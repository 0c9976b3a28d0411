"""`triton.runtime.driver` as programs use it that reload it, to get a driver anew."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from importlib import reload
import triton
for _ in range(2):
    reload(sys.modules["triton.runtime.driver"])
    reload(sys.modules["triton.runtime"])
    driver = triton.runtime.driver
    assert driver._active is None and driver._default is None
    assert isinstance(driver.active, triton.backends.driver.DriverBase)
    assert isinstance(driver.default, triton.backends.DriverBase)
    assert driver.active.utils.get_device_properties(0)["multiprocessor_count"] > 0
"""


@pytest.mark.host
def test_a_driver_that_is_made_anew():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
