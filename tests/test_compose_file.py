"""Methods as TOML files: what they may say, and every mistake that can be made in them."""

from pathlib import Path

import pytest

from r2mad.compose import KEYS
from r2mad.context import Fresh
from r2mad.diverse import Diverse
from r2mad.elicit import VerbalConfidence
from r2mad.errors import UsageError
from r2mad.mask import ObjectiveMask
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.opening import Reminded
from r2mad.parts import PARTS
from r2mad.retrieval import Retrieval
from r2mad.skew import Everyone, Graph, MemoryConfidence, Ring, ShowVerbalConfidence
from r2mad.verdict import Selective, UnanimityUnlessDoubted, Weighted

EXAMPLE = Path(__file__).parent.parent / "docs" / "method.example.toml"


def _file(folder: Path, text: str) -> str:
    path = folder / "m.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _written(folder: Path, text: str) -> Method:
    return find_method(_file(folder, f'name = "mine"\n{text}'))


def test_the_example_is_what_it_says() -> None:
    method = find_method(str(EXAMPLE))
    assert method == Method(
        "r2mad-o",
        "r2mad in which peers see only the reply of lowest perplexity, labelled by memory",
        f"{METHODS['r2mad'].source}; composed",
        opening=Diverse(12),
        retrieval=Retrieval(),
        skew=(Everyone(), ObjectiveMask(), MemoryConfidence(high=0.6)),
        context=Fresh(),
        stop=Selective(0.67, MemoryConfidence(low=0.4)),
    )
    assert set(KEYS) - {"elicit"} == {line.split(" =")[0] for line in EXAMPLE.read_text().splitlines() if " = " in line}


@pytest.mark.parametrize("name", [name for name, part in PARTS.items() if part.instead is None])
def test_a_name_means_the_same_in_a_file_as_on_a_line(name: str, tmp_path: Path) -> None:
    slot = PARTS[name].slot
    line = find_method(f"r2mad+{name}")
    if slot in ("mask", "label", "topology"):
        usual = ["everyone", name, "memory-confidence"]
        text = f"skew = {list(dict.fromkeys(part for part in usual if part == name or PARTS[part].slot != slot))}"
    else:
        text = f'{slot} = "{name}"'
    assert _written(tmp_path, f'base = "r2mad"\n{text}').composition == line.composition
    assert _written(tmp_path, f'base = "r2mad+{name}"').composition == line.composition


def test_a_file_starts_from_mad_or_from_its_base(tmp_path: Path) -> None:
    assert _written(tmp_path, "").composition == METHODS["mad"].composition
    assert _written(tmp_path, "").summary == METHODS["mad"].summary
    based = _written(tmp_path, 'base = "mad-confident+ring"\nvote = "weighted"\nagents = 4')
    assert based.skew == (Ring(), ShowVerbalConfidence())
    assert (based.agents, based.elicit, based.vote) == (4, VerbalConfidence(), Weighted())
    assert based.summary.endswith(", with ring, with its own agents and vote")
    assert based.source == f"{METHODS['mad-confident'].source}; composed"


def test_what_a_file_resizes_can_be_resized(tmp_path: Path) -> None:
    assert _written(tmp_path, 'base = "cot"').adjustable == ()
    assert _written(tmp_path, 'base = "cot"\nagents = 3\nrounds = 2').sized(agents=5, rounds=3).calls == 15
    assert _written(tmp_path, 'base = "vote"\nagents = 5').adjustable == ("agents",)


def test_fields_of_every_type(tmp_path: Path) -> None:
    method = _written(
        tmp_path,
        """
retrieval = { policy = "nearest", k = 5, gamma = 1, shown = false }
skew = [
  { part = "graph", reads = [[0, 1, 0], [0, 0, 1], [1, 0, 0]] },
  { part = "objective-mask", keep = "above-median", score = "top-token" },
  { part = "memory-confidence", high = 1, low = -0.0, beta = 2 },
]
opening = { part = "reminded", retrieval = { k = 7 } }
stop = { part = "unless-doubted", confidence = { high = 0.7 } }
""",
    )
    assert method.retrieval == Retrieval("nearest", 5, 1.0, False)
    assert method.skew == (
        Graph(((0, 1, 0), (0, 0, 1), (1, 0, 0))),
        ObjectiveMask("above-median", "top-token"),
        MemoryConfidence(1.0, 0.0, 2.0),
    )
    assert "high=1.0, low=0.0, beta=2.0" in method.composition  # however it was written, it is one composition
    assert "gamma=1.0" in method.composition
    assert method.context == Fresh()
    assert method.opening == Reminded(Retrieval("similarity", k=7))
    assert method.stop == UnanimityUnlessDoubted(MemoryConfidence(high=0.7))
    strict = _written(tmp_path, 'skew = [{ part = "subjective-mask", strict = true }]')
    assert strict.composition == METHODS["mad-m2-s-strict"].composition


def test_retrieval_in_all_its_forms(tmp_path: Path) -> None:
    assert _written(tmp_path, 'retrieval = "random"').retrieval == Retrieval("random")
    assert _written(tmp_path, 'retrieval = "retrieve-random"').retrieval == Retrieval("random")
    assert _written(tmp_path, 'retrieval = { part = "retrieve-random", k = 2 }').retrieval == Retrieval("random", 2)
    kept = _written(tmp_path, 'base = "r2mad-no-memory"\nretrieval = { k = 5 }')
    assert kept.retrieval == Retrieval(k=5, shown=False)
    for none in ("false", '"none"'):
        bare = _written(tmp_path, f'base = "r2mad"\nretrieval = {none}\nskew = []')
        assert bare.composition == METHODS["mad"].composition
        asked = _written(tmp_path, f'base = "mad-confident"\nelicit = {none}\nskew = []')
        assert asked.composition == METHODS["mad"].composition


def test_a_file_with_skew_has_no_other_filters_than_those(tmp_path: Path) -> None:
    assert _written(tmp_path, 'elicit = "verbal-confidence"\nskew = ["ring"]').skew == (Ring(),)
    assert _written(tmp_path, 'elicit = "verbal-confidence"').skew == (Everyone(), ShowVerbalConfidence())
    shown = _written(tmp_path, 'elicit = "verbal-confidence"\nskew = ["show-confidence"]')
    assert shown.composition == METHODS["mad-confident"].composition


MISTAKES = [
    ("name = \nx = 1", ": Invalid value (at line 1, column 8)"),
    ("x = " + "[" * 5000, ": its lists and tables are nested too deeply"),
    ("agents = " + "9" * 5000, ": Exceeds the limit"),
    ('name = "a"\nname = "b"\n', ": Cannot overwrite a value (at line 2"),
    ("agents = 3", ': a method needs a name, such as name = "my-method"'),
    ("name = 7", ", line 1: name is a text, not 7"),
    ('name = "a+b"', ", line 1: 'a+b' is no name: it has up to 60 letters"),
    ('name = "a,b"', "is no name"),
    ('name = ""', "is no name"),
    ('name = "-x"', "is no name"),
    ('name = "x.toml"', "is no name"),
    ('name = "mad"', ", line 1: mad is a listed method; give yours another name"),
    ('name = "sc-44"', ", line 1: sc-44 is a listed method"),
    ('name = "a"\nsummary = "x\\ny"', ", line 2: summary is one line of text, not 'x\\ny'"),
    ('name = "a"\nsummary = " "', ", line 2: summary is one line of text"),
    ('\nopnening = "ring"', ", line 2: no key 'opnening'. Did you mean opening? There are: name, summary, base, "),
    ('[[tools]]\nx = 1\nname = "a"', ", line 1: no key 'tools'. There are: "),
    ("'agents' = true", ", line 1: agents is a whole number, not true"),
    ("agents = 2.0", ", line 1: agents is a whole number, not 2.0"),
    ("agents = 0x" + "F" * 20, ", line 1: agents is a whole number, not a number beyond 64 bits"),
    ('name = "a"\nagents = 0', ": a: needs at least 1 agent and 1 round, not 0 and 3"),
    ('base = "madd"', ", line 1: no method 'madd'. Did you mean mad?"),
    ("base = 1", ", line 1: base is a text, not 1"),
    ('base = "m.toml"', ", line 1: base is a listed method, with parts behind + if need be, and not a file: 'm.toml'"),
    ('base = "m.toml+ring"', ", line 1: base is a listed method"),
    ('opening = "divers"', ", line 1: no part 'divers'. Did you mean diverse? There are: independent, diverse, "),
    ('opening = "ring"', ", line 1: ring stands under skew"),
    ('vote = "never"', ", line 1: never stands under stop"),
    ("opening = 3", ', line 1: a part is a name, or a table with part = "a name", not 3'),
    ("opening = { candidates = 3 }", ', line 1: a part is a name, or a table with part = "a name", not a table'),
    ('opening = { part = "diverse", candidats = 3 }', "diverse: no field 'candidats'. Did you mean candidates?"),
    ('opening = { part = "diverse", candidates = true }', "diverse: candidates is a whole number, not true"),
    ('opening = { part = "diverse", candidates = 0 }', "diverse: an opening keeps 'diverse'"),
    ('opening = { part = "diverse", lean = "most" }', "lean is one of diverse, low-diversity, random, not 'most'"),
    ('opening = { part = "low-diversity", lean = "diverse" }', "low-diversity says by its name that lean is"),
    ('opening = { part = "reminded", retrieval = 3 }', "reminded: retrieval is a table such as { policy = "),
    ('opening = { part = "reminded", retrieval = { k = 0 } }', "reminded: retrieval: retrieval needs k of at least 1"),
    ('[opening]\npart = "diverse"\nx = 1', ", line 1: diverse: no field 'x'"),
    ('name = "a"\nopening.part = "divers"', ", line 2: no part 'divers'"),
    ('name = "a"\nopening = { part = "diverse", candidates = 2 }', ": a: 2 candidates of the opening cannot seat 3"),
    ("retrieval = true", ', line 1: retrieval is a policy, a table, or "none", not true'),
    ('retrieval = "debate"', ", line 1: no retrieval policy 'debate'"),
    ('retrieval = { policy = "randm" }', "no retrieval policy 'randm'. Did you mean random?"),
    ("retrieval = { policy = 1 }", "policy is a text, not 1"),
    ("retrieval = { k = 1.5 }", "k is a whole number, not 1.5"),
    ("retrieval = { gamma = true }", "gamma is a number, not true"),
    ("retrieval = { gamma = nan }", "gamma is a number, not nan"),
    ("retrieval = { gamma = 2 }", "retrieval needs k of at least 1 and gamma in [0, 1]"),
    ("retrieval = { shown = 1 }", "shown is true or false, not 1"),
    ('retrieval = { form = "official" }', "form is not for a file to set: --compat official sets it"),
    ('retrieval = { policy = "random", part = "random" }', "no field 'part'"),
    ('skew = "ring"', ", line 1: skew is a list of filters, such as"),
    ('skew = ["judge"]', "judge stands under vote"),
    ('skew = ["rign"]', "no part 'rign'. Did you mean ring?"),
    ('skew = ["ring", "everyone"]', "skew is one topology, then one mask, then one label, each if need be; not ring ("),
    ('skew = ["memory-confidence", "ring"]', "not memory-confidence (label), ring (topology)"),
    ('skew = [{ part = "graph" }]', "graph: it needs reads"),
    ('skew = [{ part = "graph", reads = [[true]] }]', "graph: reads is a matrix of 0 and 1, such as"),
    ('skew = [{ part = "graph", reads = [[0, 2], [1, 0]] }]', "graph: a topology is a square matrix"),
    ('name = "a"\nskew = [{ part = "graph", reads = [[0, 1], [1, 0]] }]', ": a: its topology is for 2 agents, not 3"),
    ('skew = [{ part = "auto-mask", choice = 1 }]', "choice is not for a file to set: it is made on labelled"),
    ('skew = [{ part = "everyone", x = 1 }]', "everyone: it has no fields, so 'x' cannot be one"),
    ('name = "a"\nskew = ["show-confidence"]', ": a: stated confidence must be asked for"),
    ('name = "a"\ncontext = "history"\nskew = ["strict-mask"]', ": a: a mask removes an agent's own reply"),
    ('name = "a"\nbase = "r2mad"\nretrieval = "none"', ": a: confidence from memory needs a retrieval"),
    ('stop = { part = "selective", enough = "most" }', "selective: enough is a number, not 'most'"),
    ('stop = { part = "selective", enough = 2 }', "selective: selective debate needs a share in (0, 1]"),
    ('stop = { part = "selective", confidence = true }', "selective: confidence is a table such as { high = 0.55, "),
    ('stop = { part = "selective", confidence = { hi = 1 } }', "selective: confidence: no field 'hi'"),
    ("vote = 2026-01-01", 'a part is a name, or a table with part = "a name", not datetime.date(2026, 1, 1)'),
    (f'vote = "{"x" * 500}"', f"no part '{'x' * 56}…. There are: plurality, weighted, judge"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[text[:40] for text, _ in MISTAKES])
def test_every_mistake_of_a_file_is_one_line_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        find_method(path)
    said = str(caught.value)
    assert said.startswith(path)
    assert message in said
    assert said.isprintable()


def test_files_that_are_none(tmp_path: Path) -> None:
    for path in (tmp_path / "no.toml", tmp_path / "folder.toml", tmp_path / "a\0b.toml"):
        if path.name == "folder.toml":
            path.mkdir()
        with pytest.raises(UsageError, match="there is no such file"):
            find_method(str(path))
    large = _file(tmp_path, "#" * 1_000_001)
    with pytest.raises(UsageError, match="at most 1,000,000 bytes"):
        find_method(large)
    (tmp_path / "m.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(UsageError, match="it is not text in UTF-8"):
        find_method(large)
    (tmp_path / "m.toml").write_bytes('\ufeffname = "marked"\r\nagents = 2\r\n'.encode())
    assert find_method(large).agents == 2


def test_a_file_can_be_a_base_on_a_line(tmp_path: Path) -> None:
    method = find_method(_file(tmp_path, 'name = "mine"\nagents = 5') + "+ring")
    assert (method.name, method.agents, method.skew) == ("mine+ring", 5, (Ring(),))


def test_the_file_that_the_page_shows(tmp_path: Path) -> None:
    page = (EXAMPLE.parent / "methods.md").read_text(encoding="utf-8")
    text = page.split("**As a file**")[1].split("```toml\n")[1].split("```")[0]
    method = find_method(_file(tmp_path, text))
    assert (method.name, method.agents, method.retrieval) == ("trusting", 4, Retrieval(k=5))
    assert method.skew == (Ring(), MemoryConfidence(high=0.7))
    assert method.stop == Selective(0.67, MemoryConfidence(low=0.4))
