"""Every term that the app uses, in plain words: the one source, for the pages and for programs."""

TERMS = {
    "input": (
        "What the outcome is predicted from, such as an age or a place. Inputs are public, and written into "
        "the release file as they are; unless whole rows are protected: then nothing of them is shown."
    ),
    "private outcome": (
        "What is protected: one number per row, such as a height or a price. It is read once, at the "
        "release, and only noisy numbers leave."
    ),
    "kind of outcome": (
        "A number, yes or no, a count, or one of several classes, whose names you type. You say it; it is "
        "never found out from the private outcomes. For yes or no the release is of how likely yes is, for "
        "classes of how likely each is, for counts of how many are to be expected."
    ),
    "bounds": (
        "Between which numbers outputs are known to lie, from public knowledge and never from the data. "
        "Values outside are moved to the nearest bound. Wide bounds take more noise: it is proportional to "
        "their width."
    ),
    "epsilon": (
        "How much one row, or one person, can change what comes out. Smaller is more private and noisier. At "
        "1, somebody who knows everything else and guesses between two possibilities is right in about 60 % "
        "of all cases; a coin in 50 %. Above 5 the promise is thin."
    ),
    "delta": (
        "The small probability with which the promise at epsilon may be exceeded. It should be well below "
        "one divided by the number of rows, or of people where they are protected. If nobody says otherwise "
        "it is the power of ten below one over ten times that number."
    ),
    "differential privacy": (
        "A promise about whoever is protected, a row or a person: what is released would have come out "
        "nearly as likely if what is private about them had been anything else."
    ),
    "one row": (
        "Protects the outcome of one row: whatever it had been, what is released would have come out nearly "
        "as likely. Right where each person has one row, and inputs are public."
    ),
    "one person": (
        "Protects all outcomes of one person together, however many rows they have. A column tells whose a "
        "row is; which rows belong together is public."
    ),
    "one whole row": (
        "Protects one row with its inputs: whatever it had been, what is released would have come out nearly "
        "as likely. Only the number of rows, and the box, are public."
    ),
    "one person's whole rows": (
        "Protects all rows of one person, inputs included. Of somebody who has more rows than you allow, "
        "some are left out. The number of people is public; how many rows they have is not."
    ),
    "box": (
        "Where private inputs can be: from one number to another, or one of some levels. It comes from "
        "public knowledge and is published. A row outside counts as if at the edge."
    ),
    "cells": (
        "How finely the box is cut. What the outcome does within one cell is not told apart. More cells show "
        "finer detail, and take longer; some tens are enough for a smooth curve."
    ),
    "density of rows": (
        "About how many rows there are in each cell of the box, with noise, since inputs are private: a part "
        "of what was released."
    ),
    "learned model": (
        "How smooth the curve is, how far it moves and how far single outcomes lie from it, found out by the "
        "release itself. It is made in stages: each looks more closely where the stages before suggest, and "
        "all of them together keep the one promise."
    ),
    "expected error": (
        "How far predictions will be from the true curve, typically: privacy noise, and what the model "
        "cannot know, together. If you describe the model it is exact, as far as the model is right. If that "
        "is learned it is a forecast: the smoother and the less scattered outcomes are, the smaller it gets."
    ),
    "given": (
        "Releases of the same outcomes that a plan starts from. What they told is public, so nothing is paid "
        "for it again; the new release costs what its own promise says."
    ),
    "Gaussian process": (
        "The model: a smooth curve or surface through noisy data, which says how unsure it is."
    ),
    "kernel": (
        "How alike the curve is at two inputs. It fixes how smooth the curve is, and how far it swings."
    ),
    "lengthscale": (
        "How far apart two inputs can be and still tell about each other, in the input's own unit. Larger "
        "is smoother, and takes less noise."
    ),
    "variance": "How far the curve swings around its mean: the square of that distance.",
    "spread": (
        "How far the curve moves up and down over the inputs, as a std in the outcome's unit. The kernel's "
        "variance is its square."
    ),
    "scatter": (
        "How far single outcomes lie from the curve, as a std in the outcome's unit: people of the same age "
        "differ in height. Its square is the model's noise variance. It is no privacy noise."
    ),
    "inducing inputs": (
        "For tables of many rows: a number of points, spread over the public inputs, through which the "
        "curve is seen. More of them follow finer detail and take longer. None: every row counts by itself, "
        "which is exact and only works for some thousand rows."
    ),
    "prior mean": (
        "What the model expects where there are no data at all. The middle of the bounds, unless you say "
        "otherwise."
    ),
    "test points": (
        "Where predictions are wanted. The privacy noise is shaped for them; others can be asked later, for "
        "nothing."
    ),
    "grid": "Points at equal distances over the range of the inputs: so many along each input column.",
    "noise std": (
        "How far privacy noise moves a released number, typically. It does not depend on the private "
        "column, so it is known exactly before anything is spent."
    ),
    "faded": (
        "A point is faded where hardly more is known after the release than before: the error is at least "
        "nine tenths of how far the curve itself may move."
    ),
    "design": (
        "What the noise is shaped for: least on average (mse), least at the worst point (max), best after "
        "denoising (posterior), or the paper's (volume)."
    ),
    "plan": "Everything about a release that is known beforehand. Public and free: make as many as you like.",
    "release": (
        "The one private step: it reads the private column, adds noise and spends from the budget. It "
        "cannot be undone."
    ),
    "released": "The predictions as they came out, with privacy noise in them.",
    "denoised": "The best estimate from the released numbers under the model. It costs no more privacy.",
    "95 % band": "Where the true curve lies with probability 95 %, if the model is right.",
    "prediction": "A number at any input, worked out from a release. Free, and the same each time.",
    "whole function": (
        "A release that can be asked anywhere, when nobody knows the test points yet. It takes more noise "
        "than releasing predictions."
    ),
    "data set": (
        "A set of people, by a name in the ledger. Everything about them is paid from its one budget, and "
        "all of it protects the same: one row, one person, or whole rows. It also fixes the id column, which "
        "columns may be read privately, and the largest δ of a release."
    ),
    "budget": "All the epsilon and delta that may ever be spent on a data set. It cannot be raised.",
    "ledger": (
        "The record of what was spent, by whom and why. It refuses what does not fit, and its entries "
        "cannot be changed unseen."
    ),
    "hash chain": (
        "Each entry of the ledger carries a fingerprint of itself and of the entry before. A change "
        "anywhere breaks the chain, and is found."
    ),
    "certificate": "The numbers behind the promise, from which anyone can check it.",
    "verified": (
        "The numbers in the release file were worked out again: noise of the size stated is enough for the "
        "promise. That it was drawn at random, no file can show. In part: the file does not hold all that "
        "this takes, so the promise is claimed and not proven."
    ),
    "missing outcomes": (
        "Rows without an outcome. Dropping them tells something about them; counting them as the middle of "
        "the bounds does not."
    ),
    "token": "A secret word that signs a person in. It is shown once and kept on the server as a hash only.",
    "custodian": "Somebody who holds the private data: plans, releases, and keeps the budget.",
    "analyst": "Somebody who sees plans and releases and asks for predictions, and never the data.",
}
