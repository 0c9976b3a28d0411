"""What hosts pass to kernels in Gluon on NVIDIA GPUs."""
