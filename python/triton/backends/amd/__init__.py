"""AMD's GPUs, which are not supported; `compiler` has the name that programs import beside that of NVIDIA's."""
