"""NVIDIA GPUs as a backend, by the names of the public API: `compiler` and `driver`."""
