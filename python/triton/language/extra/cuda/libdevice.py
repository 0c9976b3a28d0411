"""An older place of `triton.language.extra.libdevice`."""

import sys

from .. import libdevice

sys.modules[__name__] = libdevice
