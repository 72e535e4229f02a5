"""Evaluates AMD's pseudo-code of instructions, as the package tinygrad carries it.

    pseudo_code.py list DIRECTORY ARCH     prints a line for each instruction that can be judged
    pseudo_code.py judge DIRECTORY ARCH    reads cases, prints a line for each instruction: agreed, differing, an example

The text comes from the package at run time. Nothing here knows the emulator: floats are computed with fractions, and
rounded once. What the evaluator does not understand is left out, and counted by the caller.
"""

import functools
import math
import re
import struct
import sys
from fractions import Fraction

FORMATS = {16: (11, -14, 15), 32: (24, -126, 127), 64: (53, -1022, 1023)}
LANE = 5


class Unknown(Exception):
    """A construction that the evaluator does not understand."""


def sliced(bits, high, low):
    """Bits from low to high; a range that runs upwards names them in the other order."""
    if high >= low:
        return Value(bits >> low, high - low + 1, "u")
    width = low - high + 1
    turned = bin(bits >> high & (1 << width) - 1)[2:].zfill(width)[::-1]
    return Value(int(turned, 2), width, "u")


class Value:
    """Bits, their number and their kind: u, i, f, bf or b."""

    def __init__(self, bits, width, kind):
        self.bits, self.width, self.kind = bits & ((1 << width) - 1), width, kind

    def number(self):
        if self.kind == "i":
            return self.bits - (1 << self.width) if self.bits >> (self.width - 1) else self.bits
        if self.kind == "f":
            return decoded(self.bits, self.width)
        if self.kind == "bf":
            return decoded(self.bits << 16, 32)
        return self.bits


def decoded(bits, width):
    return struct.unpack({16: "<e", 32: "<f", 64: "<d"}[width], bits.to_bytes(width // 8, "little"))[0]


def nan(width):
    return {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8000000000000}[width]


def encoded(number, width):
    """Rounds a fraction, an integer or a float once, to the nearest."""
    precision, least, largest = FORMATS[width]
    sign = 0
    if isinstance(number, float):
        if math.isnan(number):
            return nan(width)
        sign = int(math.copysign(1, number) < 0)
        infinity = ((1 << width) - (1 << precision)) >> 1 if width != 64 else 0x7FF << 52
        infinity = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}[width]
        if math.isinf(number):
            return sign << (width - 1) | infinity
        number = Fraction(number)
    number = Fraction(number)
    if number < 0:
        sign, number = 1, -number
    if number == 0:
        return sign << (width - 1)
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    if Fraction(2) ** exponent > number:
        exponent -= 1
    exponent = max(exponent, least)
    steps = number / Fraction(2) ** (exponent - precision + 1)
    rounded = round(steps)  # ties to even
    if rounded >= 1 << precision:
        rounded, exponent = rounded >> 1, exponent + 1
    if exponent > largest:
        return sign << (width - 1) | {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}[width]
    field = exponent - least + 1 if rounded >> (precision - 1) else 0
    return sign << (width - 1) | field << (precision - 1) | rounded & ((1 << (precision - 1)) - 1)


TOKEN = re.compile(
    r"\s*(?:(//[^\n]*)|(\d+'(?:0x[0-9A-Fa-f]+|[0-9.]+[UI]?L*|[A-Z]+\(|[A-Z]+))|(0x[0-9A-Fa-f]+U?L*|\d+\.\d+F?|\d+U?L*)"
    r"|([A-Za-z_]\w*(?:\.\w+)*)|(<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\+:|[-+*/%&|^~!<>=?:;,(){}\[\].]))"
)
TYPE = re.compile(r"^(b|u|i|f|bf)(\d+)$")
WORDS = {"if", "then", "elsif", "else", "endif", "for", "in", "do", "endfor", "declare"}


@functools.lru_cache(maxsize=None)
def tokens(text):
    at, found = 0, []
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Unknown(text[at : at + 12])
        at = match.end()
        if not match.group(1):
            found.append(match.group(0).strip())
    return tuple(found)


class Machine:
    """Executes statements while it reads them."""

    def __init__(self, text, state):
        self.tokens, self.at, self.state = tokens(text), 0, state

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, expected=None):
        token = self.peek()
        if expected is not None and token != expected:
            raise Unknown(f"{token} for {expected}")
        self.at += 1
        return token

    def block(self, ends, active):
        while self.peek() and self.peek() not in ends:
            self.statement(active)

    def statement(self, active):
        token = self.peek()
        if token == ";":
            self.take()
        elif token == "if":
            self.condition(active)
        elif token == "for":
            self.loop(active)
        elif token == "declare":
            self.take()
            name = self.take()
            self.take(":")
            width = self.take().split("'")[0]
            if not width.isdigit() or self.peek() == "[":
                raise Unknown("declare")
            self.state[name] = Value(0, int(width), "b")
        else:
            self.assignment(active)

    def condition(self, active):
        self.take("if")
        done = False
        while True:
            chosen = self.expression().number() != 0
            self.take("then")
            self.block(("elsif", "else", "endif"), active and chosen and not done)
            done = done or chosen
            word = self.take()
            if word == "elsif":
                continue
            if word == "else":
                self.block(("endif",), active and not done)
                self.take("endif")
            return

    def loop(self, active):
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.expression().number()
        self.take(":")
        last = self.expression().number()
        self.take("do")
        start = self.at
        for number in range(first, last + 1):
            self.at = start
            self.state[name] = Value(number, 32, "i")
            self.block(("endfor",), active)
        self.take("endfor")

    def assignment(self, active):
        name, *types = self.take().split(".")
        if name in WORDS or not name[0].isalpha() or len(types) > 1:
            raise Unknown(name)
        slices = []
        kind = types[0] if types else None
        while self.peek() == "[":
            slices.append(self.range())
            if self.peek() == ".":
                self.take(".")
                kind = self.take()
            elif self.peek().startswith("."):
                kind = self.take()[1:]
        operator = self.take()
        if operator not in ("=", "+=", "-="):
            raise Unknown(operator)
        value = self.expression()
        if not active:
            return
        if operator != "=":
            old = self.read(name, kind, slices)
            value = self.binary(operator[0], old, value)
        self.write(name, kind, slices, value)

    def range(self):
        self.take("[")
        high = self.expression().number()
        low = high
        if self.peek() == ":":
            self.take()
            low = self.expression().number()
        elif self.peek() == "+:":
            self.take()
            size = self.expression().number()
            low, high = high, high + size - 1
        self.take("]")
        return high, low

    def typed(self, kind):
        match = TYPE.match(kind)
        if not match:
            raise Unknown(kind)
        return match.group(1), int(match.group(2))

    def read(self, name, kind, slices):
        if name not in self.state:
            raise Unknown(name)
        value = self.state[name]
        if slices:
            value = sliced(value.bits, *slices[0])
        if kind:
            letter, width = self.typed(kind)
            value = Value(value.bits, width, letter)
        return value

    def write(self, name, kind, slices, value):
        if kind and not slices:
            letter, width = self.typed(kind)
            value = self.converted(value, letter, width)
        elif kind:
            letter, width = self.typed(kind)
            high, low = slices[0]
            if high - low + 1 in (1, width):
                width = high - low + 1
            value = self.converted(value, letter if width > 1 else "u", width)
        if not slices:
            old = self.state.get(name)
            if old is not None and name in ("D0", "VCC", "SCC", "EXEC", "D1"):
                kept = old.bits >> value.width << value.width
                value = Value(kept | value.bits, old.width, "b")
            self.state[name] = value
            return
        high, low = slices[0]
        old = self.state.get(name, Value(0, 64, "b"))
        mask = ((1 << (high - low + 1)) - 1) << low
        width = max(old.width, high + 1)
        self.state[name] = Value(old.bits & ~mask | value.bits << low & mask, width, old.kind)

    def converted(self, value, letter, width):
        """Assignment: bits for bits between integers, and floats of one size only."""
        if letter in ("f", "bf") and value.kind in ("u", "i") and value.width != width:
            raise Unknown("a number as a float")
        if letter == "f" and value.kind == "f" and value.width != width:
            return Value(encoded(value.number(), width), width, "f")
        if value.kind == "i" and value.width < width:
            return Value(value.number(), width, letter)
        return Value(value.bits, width, letter)

    # Expressions, by rank.
    RANKS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!=", "<>"], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]

    def expression(self):
        value = self.ranked(0)
        if self.peek() == "?":
            self.take()
            first = self.expression()
            self.take(":")
            second = self.expression()
            return first if value.number() != 0 else second
        return value

    def ranked(self, rank):
        if rank == len(self.RANKS):
            return self.unary()
        value = self.ranked(rank + 1)
        while self.peek() in self.RANKS[rank]:
            operator = self.take()
            value = self.binary(operator, value, self.ranked(rank + 1))
        return value

    def binary(self, operator, a, b):
        if operator in ("&&", "||"):
            first, second = a.number() != 0, b.number() != 0
            return Value(first and second if operator == "&&" else first or second, 1, "u")
        if operator in ("==", "!=", "<", ">", "<=", ">=", "<>"):
            return Value(compared(operator, a.number(), b.number()), 1, "u")
        if a.kind == "f" or b.kind == "f":
            return float_binary(operator, a, b)
        if "bf" in (a.kind, b.kind):
            raise Unknown("bf16")
        if operator in ("<<", ">>"):
            amount = b.number()
            if not 0 <= amount < 1024:
                raise Unknown("a shift by a negative number")
            moved = a.number() << amount if operator == "<<" else a.number() >> amount
            return Value(moved, max(a.width, 32), a.kind)
        # As in C, where small numbers are widened.
        width = max(a.width, b.width, 32)
        kind = "i" if a.kind == "i" and b.kind == "i" else "u"
        x, y = a.number(), b.number()
        if operator in ("/", "%") and y == 0:
            raise Unknown("a division by 0")
        table = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}
        if operator in table:
            return Value(table[operator], width, kind)
        raise Unknown(operator)

    def unary(self):
        token = self.peek()
        if token in ("-", "~", "!"):
            self.take()
            value = self.unary()
            if token == "!":
                return Value(value.number() == 0, 1, "u")
            if token == "~":
                return Value(~value.number(), value.width, value.kind)
            if value.kind == "f":
                return Value(value.bits ^ 1 << (value.width - 1), value.width, "f")
            return Value(-value.number(), value.width, "i")
        return self.postfix(self.primary())

    def postfix(self, value):
        while True:
            if self.peek() == "[":
                value = sliced(value.bits, *self.range())
            elif self.peek() == ".":
                self.take()
                letter, width = self.typed(self.take())
                value = Value(value.bits, width, letter)
            else:
                return value

    def primary(self):
        token = self.take()
        if token == "(":
            value = self.expression()
            self.take(")")
            return value
        if token == "{":
            parts = [self.expression()]
            while self.peek() == ",":
                self.take()
                parts.append(self.expression())
            self.take("}")
            bits, width = 0, 0
            for part in parts:
                bits, width = bits << part.width | part.bits, width + part.width
            return Value(bits, width, "b")
        if "'" in token:
            return self.sized(token)
        if token[0].isdigit():
            return constant(token)
        if self.peek() == "(":
            return self.call(token)
        name, *types = token.split(".")
        if len(types) > 1:
            raise Unknown(token)
        return self.read(name, types[0] if types else None, [])

    def sized(self, token):
        width, rest = token.split("'")
        width = int(width)
        if rest.endswith("("):
            value = self.expression()
            self.take(")")
            return cast(value, rest[:-1], width)
        if "." in rest:
            return Value(encoded(Fraction(rest), width), width, "f")
        return Value(int(rest.rstrip("UIL"), 0), width, "i" if "I" in rest else "u")

    def call(self, name):
        self.take("(")
        arguments = []
        while self.peek() != ")":
            arguments.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(")")
        function = FUNCTIONS.get(name)
        if function is None:
            raise Unknown(name)
        return function(*arguments)


def constant(token):
    if "." in token:
        return Value(encoded(Fraction(token.rstrip("F")), 32), 32, "f")
    return Value(int(token.rstrip("UL"), 0), 64 if "L" in token else 32, "u" if "U" in token else "i")


def cast(value, letter, width):
    if letter == "F":
        if value.kind == "f":
            return Value(encoded(value.number(), width), width, "f")
        if value.kind in ("u", "i"):
            return Value(encoded(Fraction(value.number()), width), width, "f")
        raise Unknown("a cast to a float")
    if letter in ("U", "I", "B"):
        if value.kind in ("f", "bf"):
            raise Unknown("a cast of a float")
        return Value(value.number(), width, letter.lower())
    raise Unknown(letter)


def compared(operator, x, y):
    if isinstance(x, float) or isinstance(y, float):
        if math.isnan(x) or math.isnan(y):
            return operator == "!="
    return {"==": x == y, "!=": x != y, "<>": x != y, "<": x < y, ">": x > y, "<=": x <= y, ">=": x >= y}[operator]


def float_binary(operator, a, b):
    if a.kind != "f" or b.kind != "f":
        raise Unknown("a float and another number")
    width, x, y = max(a.width, b.width), a.number(), b.number()
    if operator not in "+-*":
        raise Unknown(operator)
    plain = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y}[operator]
    if not (math.isfinite(x) and math.isfinite(y)):
        return Value(encoded(plain(), width), width, "f")
    exact = {"+": lambda p, q: p + q, "-": lambda p, q: p - q, "*": lambda p, q: p * q}[operator](Fraction(x), Fraction(y))
    if exact == 0:
        return Value(encoded(math.copysign(0.0, plain()), width), width, "f")
    return Value(encoded(exact, width), width, "f")


def fused(a, b, c):
    x, y, z = a.number(), b.number(), c.number()
    if not all(math.isfinite(one) for one in (x, y, z)):
        product = x * y if not (math.isfinite(x) and math.isfinite(y)) else math.copysign(1.0, x) * math.copysign(1.0, y) * 0.0
        return Value(encoded(product + z, c.width), c.width, "f")
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        sign = math.copysign(1.0, x) * math.copysign(1.0, y) * 0.0 + (z if z == 0 else 0.0)
        return Value(encoded(sign if Fraction(z) == 0 and Fraction(x) * Fraction(y) == 0 else 0.0, c.width), c.width, "f")
    return Value(encoded(exact, c.width), c.width, "f")


def integral(function):
    def apply(value):
        if value.kind != "f":
            raise Unknown("an integer")
        x = value.number()
        if not math.isfinite(x):
            return Value(encoded(x, value.width), value.width, "f")
        return Value(encoded(math.copysign(float(function(x)), x), value.width), value.width, "f")

    return apply


def to_integer(width, signed):
    def apply(value):
        x = value.number()
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        if math.isnan(x):
            return Value(0, width, "i" if signed else "u")
        whole = math.trunc(x) if math.isfinite(x) else (high if x > 0 else low)
        return Value(min(max(whole, low), high), width, "i" if signed else "u")

    return apply


def from_integer(width):
    return lambda value: Value(encoded(Fraction(value.number()), width), width, "f")


def to_float(width):
    return lambda value: Value(encoded(value.number(), width), width, "f")


def is_nan(value):
    return isinstance(value.number(), float) and math.isnan(value.number())


def is_quiet(value):
    return is_nan(value) and value.bits >> (FORMATS[value.width][0] - 2) & 1


def absolute(value):
    if value.kind == "f":
        return Value(value.bits & (1 << (value.width - 1)) - 1, value.width, "f")
    return Value(abs(value.number()), value.width, value.kind)


def sign_extended(value, bit):
    size = bit.number()
    if size == 0:
        return Value(0, value.width, "i")
    low = value.bits & (1 << size) - 1
    return Value(low - (1 << size) if low >> (size - 1) else low, value.width, "i")


FUNCTIONS = {
    "fma": fused,
    "abs": absolute,
    "floor": integral(math.floor),
    "ceil": integral(math.ceil),
    "trunc": integral(math.trunc),
    "isNAN": lambda value: Value(is_nan(value), 1, "u"),
    "isQuietNAN": lambda value: Value(is_quiet(value), 1, "u"),
    # The original bits decide, and a cast to 64 bits has quieted them: callers that cast are left out.
    "sign": lambda value: Value(value.bits >> (value.width - 1), 1, "u"),
    "signext": lambda value: Value(value.number(), 64, "i"),
    "signext_from_bit": sign_extended,
    "f16_to_f32": to_float(32),
    "f32_to_f16": to_float(16),
    "f32_to_f64": to_float(64),
    "f64_to_f32": to_float(32),
    "f32_to_i32": to_integer(32, True),
    "f32_to_u32": to_integer(32, False),
    "f64_to_i32": to_integer(32, True),
    "f64_to_u32": to_integer(32, False),
    "f16_to_i16": to_integer(16, True),
    "f16_to_u16": to_integer(16, False),
    "i32_to_f32": from_integer(32),
    "u32_to_f32": from_integer(32),
    "i32_to_f64": from_integer(64),
    "u32_to_f64": from_integer(64),
    "i16_to_f16": from_integer(16),
    "u16_to_f16": from_integer(16),
}

ENTRY = re.compile(r"^  (VOP3|VOP3P|SOP1|SOP2)Op\.(\w+): (\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'),?$", re.M)
NAMES = ("S0", "S1", "S2", "D0")


def entries(directory, arch):
    with open(f"{directory}/tinygrad/runtime/autogen/amd/{arch}/str_pcode.py", encoding="utf-8") as file:
        for form, name, text in ENTRY.findall(file.read()):
            text = re.sub(r"//[^\n]*", "", text[1:-1].encode().decode("unicode_escape"))
            if not re.search(r"\bD0\b", text) or re.search(r"VGPR|SGPR|PC\b|EXEC|OPSEL|SIMM|VCC|isSignalNAN|TRAPSTS|laneId\.", text):
                continue
            yield form, name.lower().removesuffix("_e64"), text


def width_of(text, name):
    sizes = [int(size) for size in re.findall(rf"\b{name}(?:\[[^\]]*\])?\.(?:b|u|i|f|bf)(\d+)", text)]
    ends = [int(end) + 1 for end in re.findall(rf"\b{name}\[(\d+) :", text)]
    return max(sizes + ends + [0])


def evaluated(text, sources, old):
    state = {name: Value(bits, 64, "b") for name, bits in zip(NAMES, sources)}
    state.update(D0=Value(old, 64, "b"), SCC=Value(0, 1, "u"), laneId=Value(LANE, 6, "u"))
    Machine(text, state).block((), True)
    return state["D0"].bits


def listing(directory, arch):
    for form, name, text in entries(directory, arch):
        mask = "D0.u64[laneId]" in text
        widths = [width_of(text, one) for one in NAMES]
        if any(width > 64 for width in widths):
            continue
        try:
            evaluated(text, [3, 5, 7], 0)
        except (Unknown, RecursionError, KeyError, OverflowError, IndexError):
            continue
        if widths[3] == 0:
            widths[3] = 32
        sizes = [64 if width > 32 else 32 if width else 0 for width in widths]
        print(form, name, *sizes, LANE + 1 if mask else widths[3], "mask" if mask else "value")


def is_float(text):
    """The size of the floats that the target, or what is put into it, consists of."""
    return re.search(r"\b(?:D0|tmp)(?:\[[^\]]*\])?\.f(\d+)\s*[-+]?=", text)


def same(found, expected, width, parts):
    if found == expected:
        return True
    for at in range(0, width, parts):
        a, b = found >> at & (1 << parts) - 1, expected >> at & (1 << parts) - 1
        if a != b and not (math.isnan(decoded(a, parts)) and math.isnan(decoded(b, parts))):
            return False
    return True


def judge(directory, arch):
    texts = {name: text for _, name, text in entries(directory, arch)}
    agreed, wrong, example = {}, {}, {}
    for line in sys.stdin:
        name, *numbers = line.split()
        *sources, old, result, width = (int(number, 16) for number in numbers)
        text = texts[name]
        try:
            expected = evaluated(text, sources, old) & (1 << width) - 1
        except (Unknown, RecursionError, OverflowError):
            continue
        float_size = is_float(text)
        fits = same(result, expected, width, int(float_size.group(1))) if float_size and width > 1 else result == expected
        (agreed if fits else wrong)[name] = (agreed if fits else wrong).get(name, 0) + 1
        if not fits:
            example.setdefault(name, f"{' '.join(numbers)} expected {expected:x}")
    for name in sorted(set(agreed) | set(wrong)):
        print(name, agreed.get(name, 0), wrong.get(name, 0), example.get(name, ""))


if __name__ == "__main__":
    {"list": listing, "judge": judge}[sys.argv[1]](sys.argv[2], sys.argv[3])
