"""What an agent is sent: laid out for prefix caches, shortened from the oldest end, never two turns of one role."""

from r2mad.context import Fresh, History, Turn, merge_turns
from r2mad.types import Failure, Message, Reply

PERSONA = (Message("system", "persona"),)


def _turns(*said: str | None) -> list[Turn]:
    return [
        (f"prompt {index}", Reply(0, text=text) if text is not None else Reply(0, error=Failure("timeout", "late")))
        for index, text in enumerate(said)
    ]


def _roles(messages: tuple[Message, ...]) -> str:
    return "".join(message.role[0] for message in messages)


def test_history_grows_only_at_its_end() -> None:
    turns = _turns("z0", "z1")
    before = next(History().layouts(PERSONA, turns[:1], "prompt 1"))
    after = next(History().layouts(PERSONA, turns, "prompt 2"))
    assert after[: len(before)] == before
    assert [message.content for message in after] == ["persona", "prompt 0", "z0", "prompt 1", "z1", "prompt 2"]
    assert _roles(after) == "suauau"


def test_history_leaves_out_the_oldest_exchanges_first_and_keeps_the_question() -> None:
    layouts = list(History().layouts(PERSONA, _turns("z0", "z1", "z2"), "prompt 3"))
    contents = [[message.content for message in layout] for layout in layouts]
    assert contents == [
        ["persona", "prompt 0", "z0", "prompt 1", "z1", "prompt 2", "z2", "prompt 3"],
        ["persona", "prompt 0", "z1", "prompt 2", "z2", "prompt 3"],
        ["persona", "prompt 0", "z2", "prompt 3"],
        ["persona", "prompt 0\n\nprompt 3"],
    ]
    assert all(layout[-1].role == "user" and "prompt 3" in layout[-1].content for layout in layouts)


def test_a_failed_reply_leaves_no_gap_and_no_two_turns_of_one_role() -> None:
    layout = next(History().layouts((), _turns(None, "z1"), "prompt 2"))
    assert _roles(layout) == "uau"
    assert layout[0].content == "prompt 0\n\nprompt 1"


def test_reasoning_is_not_sent_back() -> None:
    layout = next(History().layouts((), _turns("<think>hidden steps</think> ((A))"), "prompt 1"))
    assert "hidden" not in "".join(message.content for message in layout)
    assert "((A))" in layout[1].content


def test_examples_stand_before_the_question_and_stay() -> None:
    preamble = (*PERSONA, Message("user", "example"), Message("assistant", "shown"))
    for layout in History().layouts(preamble, _turns("z0", "z1"), "prompt 2"):
        assert layout[:3] == preamble
        assert layout[3].content.startswith("prompt 0")


def test_fresh_has_one_turn_and_nothing_to_leave_out() -> None:
    layouts = list(Fresh().layouts(PERSONA, _turns("z0", "z1"), "prompt 2"))
    assert layouts == [(Message("system", "persona"), Message("user", "prompt 2"))]
    assert Fresh().own
    assert not History().own


def test_merge_turns() -> None:
    merged = merge_turns([Message("user", "a"), Message("user", "b"), Message("assistant", "c")])
    assert merged == (Message("user", "a\n\nb"), Message("assistant", "c"))
