# Kernels on devices of CUDA, whose driver and compiler are found at run time.
list(APPEND rooms cuda)
