"""Where Python finds `triton._C.libtriton`, a module that other programs import; `triton._C` itself is one file."""
