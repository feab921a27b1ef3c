"""The library as it is: declarations, handles, tensors, errors and the log; none is public."""
