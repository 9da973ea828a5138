"""The model given what was released: free, since only noisy integers are left of y."""
