"""The atoms of numeric functions. A line each: name, words, expression of x, ranges of the parameters."""

from __future__ import annotations

from workers.functions.atoms import Atom, Choice, OneOf, Range

_SCALE = Range(0.5, 5, signed=True)
_AMPLITUDE = Range(2, 10, signed=True)
_LARGE = Range(20, 100, signed=True)
_BIAS = Range(0, 10, signed=True)
_PLACE = Range(0, 60, 0, signed=True)
_WIDTH = Range(10, 40, 0)
_PERIOD = Range(10, 60, 0)
_RATE = Range(0.05, 0.4, signed=True)
_FREQUENCY = Range(0.03, 0.3, 3)


def _atom(name: str, words: str, code: str, **parameters: Choice) -> Atom:
    return Atom(name, words, code, parameters)


NUMERIC_ATOMS = (
    _atom("linear", "a line of slope $a with intercept $b", "$a * x + $b", a=_SCALE, b=_BIAS),
    _atom("absolute", "$a times the absolute value, plus $b", "$a * abs(x) + $b", a=_SCALE, b=_BIAS),
    _atom("shifted absolute", "$a times the distance from $b", "$a * abs(x - $b)", a=_SCALE, b=_PLACE),
    _atom("quadratic", "a parabola $a (x - $b)² + $c", "$a * (x - $b) ** 2 + $c", a=_SCALE, b=_PLACE, c=_BIAS),
    _atom("cubic", "$a times the cube, plus $b", "$a * x ** 3 + $b", a=_SCALE, b=_BIAS),
    _atom("power", "$a times the power $n", "$a * x ** $n", a=_SCALE, n=OneOf((4, 5, 6))),
    _atom(
        "square root",
        "$a times the square root, plus $b; undefined below 0",
        "$a * math.sqrt(x) + $b if x >= 0 else math.nan",
        a=_AMPLITUDE,
        b=_BIAS,
    ),
    _atom(
        "root of size", "$a times the square root of |x|, plus $b", "$a * math.sqrt(abs(x)) + $b", a=_AMPLITUDE, b=_BIAS
    ),
    _atom(
        "cube root",
        "$a times the cube root, plus $b",
        # `**` of a negative number and a fraction would be complex, hence the sign apart
        "$a * math.copysign(abs(x) ** (1 / 3), x) + $b",
        a=_AMPLITUDE,
        b=_BIAS,
    ),
    _atom("exponential", "$a exp($b x)", "$a * math.exp($b * x)", a=_SCALE, b=Range(0.005, 0.05, 3, signed=True)),
    _atom(
        "decay", "$a exp(-|x| / $b): a peak at 0 with long tails", "$a * math.exp(-abs(x) / $b)", a=_AMPLITUDE, b=_WIDTH
    ),
    _atom(
        "logarithm",
        "$a times the natural logarithm, plus $b; undefined up to 0",
        "$a * math.log(x) + $b if x > 0 else math.nan",
        a=_AMPLITUDE,
        b=_BIAS,
    ),
    _atom("log of size", "$a log(|x| + 1) + $b", "$a * math.log(abs(x) + 1) + $b", a=_AMPLITUDE, b=_BIAS),
    _atom("sine", "a sine, $a sin($b x) + $c", "$a * math.sin($b * x) + $c", a=_AMPLITUDE, b=_FREQUENCY, c=_BIAS),
    _atom("cosine", "a cosine, $a cos($b x) + $c", "$a * math.cos($b * x) + $c", a=_AMPLITUDE, b=_FREQUENCY, c=_BIAS),
    _atom("tangent", "a tangent, $a tan($b x)", "$a * math.tan($b * x)", a=_SCALE, b=Range(0.005, 0.05, 3)),
    _atom("arctangent", "$a arctan($b x)", "$a * math.atan($b * x)", a=_AMPLITUDE, b=_RATE),
    _atom("hyperbolic tangent", "$a tanh($b x)", "$a * math.tanh($b * x)", a=_AMPLITUDE, b=Range(0.02, 0.2)),
    _atom("step", "$a up to $b, then $c", "$a if x <= $b else $c", a=_AMPLITUDE, b=_PLACE, c=_AMPLITUDE),
    _atom("relu", "$a max(0, x - $b): 0 up to $b, then a line", "$a * max(0.0, x - $b)", a=_SCALE, b=_PLACE),
    _atom(
        "leaky relu",
        "$a x above 0 and $b x below",
        "$a * x if x > 0 else $b * x",
        a=_SCALE,
        b=Range(0.05, 0.3, signed=True),
    ),
    _atom(
        "sigmoid",
        "a sigmoid of height $a, centre $b and rate $c",
        # By tanh, which does not overflow where exp would
        "$a * (1 + math.tanh($c * (x - $b) / 2)) / 2",
        a=_AMPLITUDE,
        b=_PLACE,
        c=_RATE,
    ),
    _atom(
        "softplus",
        "$a log(1 + exp($b x))",
        # This form of log(1 + exp) does not overflow
        "$a * (max(0.0, $b * x) + math.log1p(math.exp(-abs($b * x))))",
        a=_SCALE,
        b=_RATE,
    ),
    _atom(
        "gaussian",
        "a bell of height $a, centre $b and width $c",
        "$a * math.exp(-(((x - $b) / $c) ** 2))",
        a=_AMPLITUDE,
        b=_PLACE,
        c=_WIDTH,
    ),
    _atom("bell", "$a / (1 + (x / $b)²): a peak at 0", "$a / (1 + (x / $b) ** 2)", a=_LARGE, b=_WIDTH),
    _atom("reciprocal", "$a / (x - $b): a pole at $b", "$a / (x - $b)", a=_LARGE, b=_PLACE),
    _atom("modulo", "$a times the remainder of x by $b", "$a * (x % $b)", a=_SCALE, b=_PERIOD),
    _atom("floor", "$a floor(x / $b): stairs", "$a * math.floor(x / $b)", a=_SCALE, b=_WIDTH),
    _atom(
        "triangle wave",
        "$a times the distance to the nearest multiple of $b",
        "$a * abs(x - $b * round(x / $b))",
        a=_SCALE,
        b=_PERIOD,
    ),
    _atom(
        "square wave", "$a and -$a by turns, period $b", "$a if x % $b < $b / 2 else -($a)", a=Range(2, 10), b=_PERIOD
    ),
    _atom(
        "piecewise linear",
        "slope $a below $b and slope $c above",
        "$a * (x - $b) if x < $b else $c * (x - $b)",
        a=_SCALE,
        b=_PLACE,
        c=_SCALE,
    ),
    _atom(
        "clip",
        "$a x, kept within ±$b",
        "max(-$b, min($b, $a * x))",
        a=_SCALE,
        b=Range(20, 100, 0),
    ),
    _atom(
        "bump",
        "$a within $b of $c, else $d",
        "$a if abs(x - $c) < $b else $d",
        a=_AMPLITUDE,
        b=_WIDTH,
        c=_PLACE,
        d=Range(0.5, 2),
    ),
    _atom(
        "damped sine",
        "$a exp(-|x| / $b) sin($c x)",
        "$a * math.exp(-abs(x) / $b) * math.sin($c * x)",
        a=_LARGE,
        b=Range(20, 80, 0),
        c=_FREQUENCY,
    ),
)
"""All are finite from -128 to 128, except the poles of two and the lower half of the root and the logarithm."""
