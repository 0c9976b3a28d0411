"""What is left of a package of early releases of the public API: `matmul_perf_model`."""
