"""The functions of libdevice: what no target has an instruction for."""
