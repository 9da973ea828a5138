"""The model given what was released: free, since only noisy integers are left of y.

Conditioning needs the prior covariances of what was measured with f anywhere: these are the links.
"""
