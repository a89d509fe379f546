"""Pictures: kernels that fill one RGB image, on any arch and without a window."""
