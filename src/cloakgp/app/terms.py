"""Every term that the app uses, in plain words."""

TERMS = {
    "input": "A column that is public, such as age. Inputs are in the release file as they are.",
    "output": (
        "The private column: one value for each row, such as height. It is read once, by the release, and "
        "no value of it is ever shown."
    ),
    "bounds": (
        "Between which numbers outputs are known to lie, from public knowledge and never from the data. "
        "Values outside are moved to the nearest bound. Wide bounds take more noise: it is proportional to "
        "their width."
    ),
    "epsilon": (
        "How much one row can change what comes out. Smaller is more private and noisier. At 1, somebody "
        "who knows everything else and guesses between two values of a row is right in about 60 % of all "
        "cases; a coin in 50 %. Above 5 the promise is thin."
    ),
    "delta": (
        "The small probability with which the promise at epsilon may be exceeded. It should be well below "
        "one divided by the number of rows."
    ),
    "differential privacy": (
        "A promise about each row: what is released would have come out nearly as likely if that row's "
        "private value had been another."
    ),
    "unit": "What is protected: the output of one row. A person who owns several rows is protected less.",
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
    "noise variance": (
        "How far single outputs scatter around the curve: the square of that distance. This is about "
        "people, and not about privacy."
    ),
    "inducing inputs": (
        "For tables of many rows: a number of places, spread over the public inputs, through which the curve "
        "is seen. More of them follow finer detail and take longer. None: every row is a place of its own, "
        "which is exact and only works for some thousand rows."
    ),
    "mean": (
        "What the curve is expected to be where there are no data; the middle of the bounds, if not given."
    ),
    "test points": (
        "Where predictions are wanted. The privacy noise is shaped for them; others can be asked later, for"
        " nothing."
    ),
    "noise std": (
        "How far privacy noise moves a released number, typically. It does not depend on the private "
        "column, so it is known exactly before anything is spent."
    ),
    "faded": (
        "A point is faded where the noise is large against the width of the bounds: its number says little."
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
    "prediction": "A number at any input, worked out from a release. Free, and the same each time.",
    "function": (
        "A release of the whole curve, to be asked anywhere. It takes more noise than predictions at known "
        "points."
    ),
    "interval": "Where the curve lies with the probability given, if the model is right.",
    "data set": (
        "A set of people, by a name in the ledger. Everything about them is paid from its one budget."
    ),
    "budget": "All the epsilon and delta that may ever be spent on a data set. It cannot be raised.",
    "ledger": (
        "The record of what was spent, by whom and why. It refuses what does not fit, and its entries "
        "cannot be changed unseen."
    ),
    "chain": "Each entry of the ledger carries a hash of the one before, so that a change shows.",
    "certificate": "The numbers behind the promise, from which anyone can check it.",
    "verify": "Work out the promise again from the numbers in a release file, without trusting who made it.",
    "missing": (
        "What happens to rows without an output: refuse the release, or count them as the middle of the "
        "bounds, which protects being missing, too."
    ),
    "custodian": "Somebody who holds the private data: plans, releases, and keeps the budget.",
    "analyst": "Somebody who sees plans and releases and asks for predictions, and never the data.",
}
