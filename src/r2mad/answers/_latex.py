"""LaTeX (or what models write for it) to a flat list of tokens. Everything that only changes the looks is dropped here.

A token is a pair (kind, value):

    num    a decimal literal, thousands separators already gone where the writer was explicit (`10,\\!080`)
    name   one variable: a letter, or a Greek letter's command
    func   sin, ln, sqrt, ...; `frac`, `binom` and the like as well
    const  pi, e, i, infty, emptyset, reals
    op     + - * / ^ _ ! pm mp deg prime
    rel    = ~ (roughly equal) < > <= >= != in
    open / close   one of ( [ { set < | floor ceil ; `{` is a mere group, `set` an escaped brace
    bar    | , whose side is for the parser to find out
    comma  "," ; ",3" where three digits follow a digit, so that it may be a thousands separator; "or" for a word
    word / text    letters that are not mathematics: a bare word, or the contents of \\text{...}
    begin / end / row / amp    of an environment
    setop  cup, cap, setminus
    cmd    any other command: the reader of the tokens will give up on it
"""

from __future__ import annotations

import re
import unicodedata

from r2mad.answers._words import word_set

Token = tuple[str, str]

FUNCTIONS = word_set("sin cos tan cot sec csc arcsin arccos arctan arccot sinh cosh tanh ln log lg exp sqrt frac binom")
GREEK = word_set(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell"
)
_TEXT_COMMANDS = word_set(
    "text mbox hbox textbf textit textrm textsf texttt textnormal mathrm mathbf mathit mathsf mathtt mathcal "
    "boldsymbol bm operatorname rm bf it"
)
_DROPPED = word_set(
    "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle "
    "scriptstyle limits nolimits quad qquad enspace thinspace space hspace boxed fbox angle triangle measuredangle"
)
_SPACING = frozenset(",;:!\\$%&#> \n\t")
_COMMANDS: dict[str, Token] = {
    "dfrac": ("func", "frac"), "tfrac": ("func", "frac"), "cfrac": ("func", "frac"), "dbinom": ("func", "binom"),
    "tbinom": ("func", "binom"), "choose": ("cmd", "choose"), "asin": ("func", "arcsin"), "acos": ("func", "arccos"),
    "atan": ("func", "arctan"), "pi": ("const", "pi"), "infty": ("const", "infty"), "infinity": ("const", "infty"),
    "emptyset": ("const", "emptyset"), "varnothing": ("const", "emptyset"), "cdot": ("op", "*"), "times": ("op", "*"),
    "ast": ("op", "*"), "div": ("op", "/"), "pm": ("op", "pm"), "mp": ("op", "mp"), "circ": ("op", "deg"),
    "degree": ("op", "deg"), "degrees": ("op", "deg"), "prime": ("op", "prime"), "le": ("rel", "<="),
    "leq": ("rel", "<="), "leqslant": ("rel", "<="), "ge": ("rel", ">="), "geq": ("rel", ">="),
    "geqslant": ("rel", ">="), "lt": ("rel", "<"), "gt": ("rel", ">"), "ne": ("rel", "!="), "neq": ("rel", "!="),
    "approx": ("rel", "~"), "in": ("rel", "in"), "cup": ("setop", "cup"), "cap": ("setop", "cap"),
    "setminus": ("setop", "setminus"), "backslash": ("setop", "setminus"), "lor": ("comma", "or"),
    "vee": ("comma", "or"), "land": ("comma", "and"), "langle": ("open", "<"), "rangle": ("close", "<"),
    "lfloor": ("open", "floor"), "rfloor": ("close", "floor"), "lceil": ("open", "ceil"),
    "rceil": ("close", "ceil"), "lbrace": ("open", "set"), "rbrace": ("close", "set"), "lvert": ("bar", "|"),
    "rvert": ("bar", "|"), "vert": ("bar", "|"), "mid": ("bar", "|"), "lbrack": ("open", "["),
    "rbrack": ("close", "["), "|": ("cmd", "norm"), "{": ("open", "set"), "}": ("close", "set"),
    "overline": ("func", "overline"), "bar": ("func", "overline"), "cr": ("row", ""), "iff": ("cmd", "iff"),
}  # fmt: skip
_CHARACTERS: dict[str, Token] = {
    "+": ("op", "+"), "-": ("op", "-"), "*": ("op", "*"), "/": ("op", "/"), "^": ("op", "^"), "_": ("op", "_"),
    "!": ("op", "!"), "'": ("op", "prime"), "=": ("rel", "="), "<": ("rel", "<"), ">": ("rel", ">"),
    "(": ("open", "("), ")": ("close", "("), "[": ("open", "["), "]": ("close", "["), "{": ("open", "{"),
    "}": ("close", "{"), "|": ("bar", "|"), ",": ("comma", ","), ";": ("comma", "or"), "&": ("amp", ""),
    ":": ("colon", ":"),
}  # fmt: skip
_SYMBOLS = {
    "−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "⁄": "/", "∕": "/", "√": r"\sqrt ",
    "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "°": r"^\circ ", "±": r"\pm ", "∓": r"\mp ",
    "∅": r"\emptyset ", "ℝ": r"\mathbb{R}", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ",
    "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega ", "′": "'", "’": "'", "∠": "", "€": "", "£": "", "¥": "",
    "½": r"\frac{1}{2}", "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}", "⅖": r"\frac{2}{5}", "⅗": r"\frac{3}{5}", "⅘": r"\frac{4}{5}", "⅙": r"\frac{1}{6}",
    "⅚": r"\frac{5}{6}", "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}",
    "⟨": r"\langle ", "⟩": r"\rangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "\u200b": "", "\ufeff": "", "\u2061": "", "\u2062": "",
}  # fmt: skip
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))

# Units that a bare answer carries and that would else be read as products of variables ("5 cm" is not 5·c·m).
_UNITS = word_set(
    "mm cm dm km kg mg ml mL ft yd mi lb lbs oz hr hrs sec secs min mins mph kph rpm sq cu deg rad Hz kHz MHz kW kWh "
    "MW kPa Pa atm mol eV gal pt qt in cc"
)
_SHORT_WORDS = word_set("no on up in is of or we if at")
_SEPARATORS = frozenset(["and", "or"])
_ALL_REALS = frozenset(["all real numbers", "all reals", "the set of all real numbers", "all real x", "real numbers"])

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\\!|\{,\}|\\,|\\ |~| |\u202f|\u2009|\xa0) ?\d{3}(?!\d))+")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_LETTERS = re.compile(r"[A-Za-z]+")
_COMMAND = re.compile(r"[A-Za-z]+\*?")


class Unreadable(ValueError):
    """The tokens make no formula that we know."""


def tidy(text: str) -> str:
    """One spelling for characters that have several: Unicode signs become LaTeX, explicit thousands are joined."""
    out: list[str] = []
    for char in text:
        if char in _SYMBOLS:
            out.append(_SYMBOLS[char])
        elif char in _SUPERSCRIPTS:
            digit = _SUPERSCRIPTS[char]
            if out and out[-1].startswith("^{") and out[-1].endswith("}"):
                out[-1] = out[-1][:-1] + digit + "}"
            else:
                out.append("^{" + digit + "}")
        elif char in _SUBSCRIPTS:
            out.append("_" + _SUBSCRIPTS[char])
        else:
            out.append(unicodedata.normalize("NFKC", char))
    joined = "".join(out).replace("**", "^")
    return _GROUPED.sub(lambda match: re.sub(r"\D", "", match.group()), joined)


def tokenize(text: str) -> list[Token]:
    """The tokens of a formula, in order.

    Raises:
        Unreadable: a character that no formula holds, or a brace that never closes inside \\text.
    """
    return _Tokenizer(tidy(text)).run()


def product_like(run: str) -> bool:
    """Whether a run of letters reads as a product of variables (`ab`, `xyz`) rather than as a word (`even`)."""
    if run.lower() in _SHORT_WORDS:
        return False
    if len(run) <= 2:
        return True
    title = run[0].isupper() and run[1:].islower()
    return len(run) <= 6 and not title and not set("eiouEIOU") & set(run)


class _Tokenizer:
    """One pass over the text; each method reads one thing at `self.at` and moves on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char.isspace() or char in "$~":
                self.at += 1
            elif char == "\\":
                self._command()
            elif char in "0123456789" or (char == "." and self.text[self.at + 1 : self.at + 2].isdecimal()):
                self._number()
            elif char.isascii() and char.isalpha():
                self._letters()
            else:
                self._character(char)
        return self.tokens

    def _put(self, kind: str, value: str) -> None:
        self.tokens.append((kind, value))

    def _number(self) -> None:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise Unreadable(self.text[self.at])
        value, self.at = match.group(), match.end()
        if value.endswith("."):  # a full stop, unless a repeating part follows
            value = value[:-1]
            if self.text.startswith((r"\overline", r"\bar"), self.at):
                value += "."
        self._put("num", value)

    def _letters(self) -> None:
        match = _LETTERS.match(self.text, self.at)
        if match is None:
            raise Unreadable(self.text[self.at])
        run, self.at = match.group(), match.end()
        self._classify(run)

    def _classify(self, run: str) -> None:
        after_number = bool(self.tokens) and self.tokens[-1][0] in ("num", "close")
        if run in FUNCTIONS or run in ("asin", "acos", "atan"):
            self.tokens.append(_COMMANDS.get(run, ("func", run)))
        elif run.lower() in _SEPARATORS:
            self._put("comma", run.lower())
        elif run.lower() in ("pi", "infinity", "infty", "inf"):
            self.tokens.append(("const", "pi") if run.lower() == "pi" else ("const", "infty"))
        elif run in GREEK and len(run) > 2:
            self._put("name", run)
        elif (after_number and run in _UNITS) or not product_like(run):
            prefix = next((f for f in ("sqrt", "sin", "cos", "tan", "cot", "ln", "log") if run.startswith(f)), "")
            if prefix and len(run) - len(prefix) <= 2:
                self._put("func", prefix)
                self._singles(run[len(prefix) :])
            else:
                self._put("word", run)
        else:
            self._singles(run)

    def _singles(self, run: str) -> None:
        for letter in run:
            self.tokens.append(("const", letter) if letter in "ei" else ("name", letter))

    def _character(self, char: str) -> None:
        self.at += 1
        if char == ".":
            if self.text[self.at :].strip(" .$") == "":
                return  # a closing full stop
            raise Unreadable(char)
        if char == "%":
            return
        if char == "<" and self.text.startswith("=", self.at):
            self.at += 1
            self._put("rel", "<=")
        elif char == ">" and self.text.startswith("=", self.at):
            self.at += 1
            self._put("rel", ">=")
        elif char == "!" and self.text.startswith("=", self.at):
            self.at += 1
            self._put("rel", "!=")
        elif char == ",":
            before, after = self.text[self.at - 2 : self.at - 1], self.text[self.at : self.at + 4]
            tight = before.isdecimal() and len(after) >= 3 and after[:3].isdecimal() and not after[3:].isdecimal()
            self._put("comma", ",3" if tight else ",")
        elif char in _CHARACTERS:
            self.tokens.append(_CHARACTERS[char])
        else:
            raise Unreadable(char)

    def _command(self) -> None:
        match = _COMMAND.match(self.text, self.at + 1)
        if match is None:
            self._escape()
            return
        name, self.at = match.group().rstrip("*"), match.end()
        if name in _TEXT_COMMANDS:
            self._text(name)
        elif name in _DROPPED:
            if name in ("left", "right", "middle") and self.text.startswith(".", self.at):
                self.at += 1  # \left. is an invisible bracket
        elif name in ("begin", "end"):
            self._put(name, self._braced())
            if self.tokens[-1] == ("begin", "array"):
                self._braced()  # the column specification
        elif name == "mathbb":
            self._put(*(("const", "reals") if self._braced() == "R" else ("cmd", "mathbb")))
        elif name in _COMMANDS:
            if name in ("circ", "degree", "prime"):
                self._unraised()
            self.tokens.append(_COMMANDS[name])
        elif name in FUNCTIONS:
            self._put("func", name)
        elif name in GREEK:
            self._put("name", name)
        else:
            self._put("cmd", name)

    def _unraised(self) -> None:
        """Take back the `^` of `90^\\circ` or `90^{\\circ}`, which is no power."""
        if self.tokens[-1:] == [("op", "^")]:
            self.tokens.pop()
        elif self.tokens[-2:] == [("op", "^"), ("open", "{")]:
            del self.tokens[-2:]
            self.at = max(self.at, self.text.find("}", self.at) + 1)

    def _escape(self) -> None:
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if char == "\\":
            self._put("row", "")
        elif char in ("{", "}", "|"):
            self.tokens.append(_COMMANDS[char])
        elif char not in _SPACING and char not in "()[]":
            raise Unreadable("\\" + char)

    def _braced(self) -> str:
        """The contents of the braces that start here, which may nest; or one character where there are none."""
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        if not self.text.startswith("{", self.at):
            self.at += 1
            return self.text[self.at - 1 : self.at]
        depth, start = 0, self.at + 1
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            depth += (char == "{") - (char == "}")
            if depth == 0:
                return self.text[start : self.at - 1]
        raise Unreadable("a brace is never closed")

    def _text(self, command: str) -> None:
        content = self._braced()
        plain = re.sub(r"\s+", " ", content.replace("~", " ")).strip(" .,")
        bare = plain.strip("()")
        if plain.lower() in _SEPARATORS:
            self._put("comma", plain.lower())
        elif not plain and "," in content:
            self._put("comma", ",")
        elif plain.lower() in _ALL_REALS:
            self._put("const", "reals")
        elif plain.lower() in ("degrees", "degree"):
            self._put("op", "deg")
        elif not plain or plain in ("%", r"\%"):
            return
        elif not any(char.isalpha() for char in plain) or (
            command.startswith(("math", "bold", "bm", "operator")) and (len(plain) == 1 or plain in FUNCTIONS)
        ):
            self.tokens.extend(_Tokenizer(plain).run())
        elif len(bare) == 1 and bare.isascii() and not self.tokens:
            self._singles(bare)  # \text{(C)} is the answer C
        else:
            self._put("text", plain)
