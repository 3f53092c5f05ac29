"""Prompt packs: what agents are told, kept in files, in our own words, and replaceable by the user's.

A pack is a folder with a `pack.toml` (its name, the agents' personas, examples if it has any) and Jinja2 templates;
a template that a pack does not have comes from `base`. Text from users, peers and memories is fenced by the `fence`
filter, so it stays data.

    system.j2   persona, kind                      who the agent is, and how an answer must end
    task.j2     question                           round 0
    debate.j2   question, peers, own               every later round
    format.j2   macros: how an answer of each kind is written down
    confidence.j2                                  asks how sure the agent is, after the prompts of methods that want it
    experience.j2  cases                           what an agent remembers, before the peers' replies
    summary.j2  question, previous, replies, consensus  asks for the summary of a round; empty: the tally's plain line
    mask.j2     question, reply                    asks whether a reply is right (subjective mask)
    judge.j2    question, replies                  asks for the group's answer from its last replies
    verify.j2   question, answer                   asks a verifier whether an answer is right
"""

from r2mad.prompts.pack import (
    Example,
    Held,
    Pack,
    Persona,
    ShownCase,
    ShownReply,
    load_pack,
    pack_names,
    suggest_pack,
)

__all__ = ["Example", "Held", "Pack", "Persona", "ShownCase", "ShownReply", "load_pack", "pack_names", "suggest_pack"]
