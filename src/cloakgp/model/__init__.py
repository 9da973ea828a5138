"""The model: a Gaussian process whose settings are public, and how it turns outcomes into predictions.

A smoother is the matrix C of predictions C y, exact, through inducing inputs, or on a GPU. It is made from X
alone: nothing here has a name for y.
"""
