# Kernels on devices of OpenCL, whose loader is found at run time.
list(APPEND rooms opencl)
