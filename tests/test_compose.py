"""Methods on one line, and the table of parts; those in files are tested in `test_compose_file.py`."""

import itertools
from dataclasses import MISSING, fields
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2mad.api import debate
from r2mad.compose import KEYS, compose, parts_table
from r2mad.context import Fresh, History
from r2mad.diverse import Diverse
from r2mad.elicit import VerbalConfidence
from r2mad.errors import UnknownNameError, UsageError
from r2mad.mask import AutoMask, ObjectiveMask, SubjectiveMask
from r2mad.method import Method
from r2mad.methods import METHODS, find_method
from r2mad.opening import Independent, Reminded
from r2mad.parts import PARTS, SLOTS
from r2mad.retrieval import POLICIES, Retrieval
from r2mad.skew import Everyone, MemoryConfidence, Ring, ShowVerbalConfidence
from r2mad.verdict import Judge, Never, Plurality, Selective, Unanimity, UnanimityUnlessDoubted, Weighted

PAGE = Path(__file__).parent.parent / "docs" / "methods.md"


# On one line

OPENINGS = {
    "independent": Independent(),
    "diverse": Diverse(),
    "low-diversity": Diverse(lean="low-diversity"),
    "random-opening": Diverse(lean="random"),
    "reminded": Reminded(),
}
STOPS = {
    "unanimity": Unanimity(),
    "never": Never(),
    "unless-doubted": UnanimityUnlessDoubted(),
    "selective": Selective(0.6),
}
MASKS = {
    "subjective-mask": SubjectiveMask(),
    "strict-mask": SubjectiveMask(strict=True),
    "objective-mask": ObjectiveMask(),
    "auto-mask": AutoMask(),
}


def test_each_part_takes_the_place_of_what_the_base_has_there() -> None:
    for name, opening in OPENINGS.items():
        assert find_method(f"mad+{name}").opening == opening
    for name, stop in STOPS.items():
        assert find_method(f"r2mad+{name}").stop == stop
    for policy in POLICIES:
        assert find_method(f"mad+retrieve-{policy}").retrieval == Retrieval(policy)
    assert find_method("r2mad-no-memory+retrieve-random").retrieval == Retrieval("random", shown=False)
    assert find_method("mad-sparse+everyone").skew == (Everyone(),)
    assert find_method("r2mad+ring").skew == (Ring(), MemoryConfidence())
    assert find_method("mad+fresh").context == Fresh()
    assert find_method("mad+history").context == History()
    assert find_method("mad-m2-o+judge").vote == Judge()
    assert find_method("mad-judge+plurality").vote == Plurality()


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_stands_between_topology_and_label_and_brings_a_fresh_context(mask: str) -> None:
    method = find_method(f"r2mad+{mask}")
    assert method.skew == (Everyone(), MASKS[mask], MemoryConfidence())
    assert method.context == Fresh()
    assert find_method(f"mad-m2-s+ring+{mask}").skew == (Ring(), MASKS[mask])
    with pytest.raises(UsageError, match=rf"^mad\+{mask}\+history: a mask removes an agent's own reply"):
        find_method(f"mad+{mask}+history")


def test_stated_confidence_is_shown_unless_memory_labels() -> None:
    shown = find_method("mad+verbal-confidence")
    assert (shown.elicit, shown.skew) == (VerbalConfidence(), (Everyone(), ShowVerbalConfidence()))
    recorded = find_method("r2mad+verbal-confidence")
    assert (recorded.elicit, recorded.skew) == (VerbalConfidence(), (Everyone(), MemoryConfidence()))
    assert find_method("r2mad-no-confidence+verbal-confidence").skew == (Everyone(), ShowVerbalConfidence())
    other = find_method("mad-confident+memory-confidence+retrieve-nearest")
    assert (other.elicit, other.skew) == (VerbalConfidence(), (Everyone(), MemoryConfidence()))
    voted = find_method("mad+weighted")  # asked for and voted by, and not shown
    assert (voted.elicit, voted.skew, voted.vote) == (VerbalConfidence(), (Everyone(),), Weighted())


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mad+everyone", "mad"),
        ("mad+everyone+plurality+history+unanimity+independent", "mad"),
        ("mad+verbal-confidence", "mad-confident"),
        ("mad+verbal-confidence+weighted", "mad-confident-weighted"),
        ("mad+diverse+verbal-confidence", "mad-diverse-confident"),
        ("mad+random-opening", "mad-diverse-random"),
        ("mad+low-diversity", "mad-low-diversity"),
        ("mad+strict-mask", "mad-m2-s-strict"),
        ("mad+auto-mask", "mad-m2-auto"),
        ("mad+selective", "mad-selective"),
        ("mad+judge", "mad-judge"),
        ("mad+retrieve-pos-neg+memory-confidence", "r2mad-pos-neg"),
        ("r2mad+unless-doubted", "r2mad-doubt"),
        ("cot+reminded", "icl-cot"),
    ],
)
def test_what_is_composed_as_a_listed_method_is_that_method(line: str, name: str) -> None:
    assert find_method(line).composition == find_method(name).composition


def test_names_are_canonical() -> None:
    names = ["diverse", "ring", "objective-mask", "never", "judge"]
    methods = {find_method("+".join(["r2mad", *order])) for order in itertools.permutations(names)}
    (method,) = methods
    assert method.name == "r2mad+diverse+ring+objective-mask+never+judge"
    assert find_method(method.name) == method
    assert find_method(" mad + judge + ring ").name == "mad+ring+judge"
    assert method.summary == (
        "mad with experience memory, and peers weighed by it, with diverse, ring, objective-mask, never and judge"
    )
    assert method.source == f"{METHODS['r2mad'].source}; composed"
    assert find_method("mad+ring").summary.endswith(", with ring")
    assert compose(METHODS["mad"], []) is METHODS["mad"]


def test_self_consistency_can_be_a_base() -> None:
    method = find_method("sc-5+weighted")
    assert (method.calls, method.elicit, method.vote) == (5, VerbalConfidence(), Weighted())
    with pytest.raises(UsageError, match="by definition"):
        method.sized(rounds=3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("madd+ring", r"^no method 'madd'\. Did you mean mad\? There are: cot, "),
        ("+ring", r"^no method ''\. There are: cot, "),
        ("mad+rong", r"^no part 'rong'\. Did you mean ring\? There are: verbal-confidence, independent, "),
        ("mad+", r"^no part ''\. There are: "),
        ("mad+debate-state", r"Did you mean retrieve-debate-state\?"),
        ("mad+ring+everyone", r"^mad takes one topology, not both everyone and ring: leave one out$"),
        ("mad+ring+ring", r"^mad takes one topology, not both ring and ring: leave one out$"),
        ("mad+judge+ring+weighted", r"^mad takes one vote, not both judge and weighted: leave one out$"),
        ("mad+graph", r"^graph stands in a file and not on a line: it takes a matrix$"),
        ("mad+show-confidence", r"^show-confidence stands in a file and not on a line: verbal-confidence shows"),
        ("vote+ring", r"^vote\+ring: vote has one round, and ring acts after it; leave ring out$"),
        ("cot+retrieve-random", r"^cot\+retrieve-random remembers before its second round, so it needs at least 2"),
        ("mad+memory-confidence", r"^mad\+memory-confidence: confidence from memory needs a retrieval"),
        ("mad+unless-doubted", r"^mad\+unless-doubted: confidence from memory needs a retrieval"),
        ("r2mad.toml+ring", r"^r2mad\.toml: there is no such file$"),
    ],
)
def test_what_cannot_be_on_a_line(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_method(line)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, UnknownNameError) == str(caught.value).startswith("no ")


@given(
    base=st.sampled_from([*METHODS, "sc-4", "mad-"]),
    names=st.lists(st.sampled_from([*PARTS, "junk"]), min_size=1, max_size=5),
    chance=st.randoms(use_true_random=False),
)
def test_any_parts_make_a_method_or_a_clear_mistake_in_any_order(base: str, names: list[str], chance: Random) -> None:
    def made(order: list[str]) -> Method | type[UsageError]:
        try:
            return find_method("+".join([base, *order]))
        except UsageError:
            return UsageError

    first = made(names)
    assert first == made(chance.sample(names, len(names)))
    if isinstance(first, Method):
        assert find_method(first.name) == first
        assert sorted(first.name.removeprefix(f"{base}+").split("+")) == sorted(names)


# The table


def test_the_table_of_parts() -> None:
    rows = parts_table()
    assert [row["name"] for row in rows] == list(PARTS)
    assert list(dict.fromkeys(row["slot"] for row in rows)) == list(SLOTS)
    assert {row["name"] for row in rows if not row["line"]} == {"graph", "show-confidence"}
    told = {row["name"]: row["fields"] for row in rows}
    assert told["selective"] == {"enough": "0.6", "confidence": "none"}
    assert told["unless-doubted"] == {"confidence": "{ high = 0.55, low = 0.45, beta = 4.0 }"}
    assert told["graph"] == {"reads": "required"}
    assert told["retrieve-random"] == {"k": "3", "gamma": "0.9", "shown": "true"}
    assert told["strict-mask"] == told["auto-mask"] == told["judge"] == {}
    for part in PARTS.values():
        assert part.help
        required = any(one.default is MISSING for one in fields(part.make))
        assert required or part.built() == part.built({})


def test_the_page_of_methods_has_every_part() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in PARTS if f"`{name}`" not in page and not name.startswith("retrieve-")] == []
    assert [policy for policy in POLICIES if f"`{policy}`" not in page] == []
    assert [key for key in KEYS if f"`{key}`" not in page and f"\n{key} = " not in page] == []
    assert [part.make.__name__ for part in PARTS.values() if f"`{part.make.__name__}" not in page] == []


# They run


@pytest.mark.parametrize(
    "line",
    [
        "mad+ring+judge",
        "mad+subjective-mask+never",
        "mad+verbal-confidence+random-opening+weighted",
        "mad+selective+fresh",
        "sc-3+verbal-confidence+weighted",
    ],
)
async def test_a_composed_method_debates(line: str, tmp_path: Path) -> None:
    record = await debate("What is 2 + 2?", method=line, model="scripted/seeded", seed=3, cache=":memory:")
    assert record.method == find_method(line).name
    assert record.composition == find_method(line).composition
    assert sum(record.calls.values()) <= find_method(line).calls
    path = tmp_path / "m.toml"
    path.write_text(f'name = "filed"\nbase = "{line}"')
    filed = await debate("What is 2 + 2?", method=str(path), model="scripted/seeded", seed=3, cache=":memory:")
    assert (filed.method, filed.composition, filed.answer) == ("filed", record.composition, record.answer)
