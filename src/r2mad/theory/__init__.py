"""The theory of debate as code: closed forms, what bounds them, and a simulation of each. It needs numpy only.

    latent      concepts, prior and skew, log-odds and their parts (R2-MAD, Eq. 2–3, 9–27, 31; Propositions 4.1 and 4.2)
    joint       Theorem C.3 as printed, its counterexample, and a bound that holds (Eq. 28–30)
    masking     false memories: CoT-SC, plain and masked debate (MAD-M², Assumption 2.1, Proposition 2.3)
    tokens      what they cost
    martingale  plain debate as a martingale, confidence as its drift (seed 002, Lemmas 1 and 2, Corollary 1)
    coverage    diverse openings (seed 002, Eq. 29–30)

Every closed form is vectorised. Its twin `simulate_…(rng, …)` plays the model out and gives one value a draw, so that
a mean and its standard error follow. `docs/theory.md` leads from the papers' equations to the functions.
"""

from r2mad.theory.coverage import (
    coverage_success,
    distinct_among,
    diverse_opening,
    expected_coverage,
    random_opening,
    simulate_coverage,
    simulate_opening,
)
from r2mad.theory.joint import (
    Bound,
    LastStep,
    corrected_bound,
    counterexample,
    gain,
    last_step,
    printed_bound,
    simulate_gain,
)
from r2mad.theory.latent import (
    LogOdds,
    confidence_lift,
    corrected_prior,
    decomposition,
    dominance_log_rate,
    effective_majority,
    generation,
    log_odds,
    majority_lift,
    margin,
    memory_lift,
    posterior,
    rival_ratio,
    simulate_posterior,
    vanilla_posterior,
)
from r2mad.theory.martingale import (
    PLAIN,
    Confidence,
    belief,
    confident_shares,
    convex_form,
    dominates,
    expected_belief,
    expected_plain,
    misleading,
    simulate_beliefs,
    update,
)
from r2mad.theory.masking import (
    answer_success,
    by_agents,
    majority,
    masked_success,
    plain_success,
    round_bounds,
    round_success,
    sc_bounds,
    sc_success,
    simulate_debate,
    simulate_majority,
    success_ceiling,
    tolerable_false,
)
from r2mad.theory.tokens import objective_tokens, plain_tokens, simulate_tokens, subjective_tokens

__all__ = [
    "PLAIN",
    "Bound",
    "Confidence",
    "LastStep",
    "LogOdds",
    "answer_success",
    "belief",
    "by_agents",
    "confidence_lift",
    "confident_shares",
    "convex_form",
    "corrected_bound",
    "corrected_prior",
    "counterexample",
    "coverage_success",
    "decomposition",
    "distinct_among",
    "diverse_opening",
    "dominance_log_rate",
    "dominates",
    "effective_majority",
    "expected_belief",
    "expected_coverage",
    "expected_plain",
    "gain",
    "generation",
    "last_step",
    "log_odds",
    "majority",
    "majority_lift",
    "margin",
    "masked_success",
    "memory_lift",
    "misleading",
    "objective_tokens",
    "plain_success",
    "plain_tokens",
    "posterior",
    "printed_bound",
    "random_opening",
    "rival_ratio",
    "round_bounds",
    "round_success",
    "sc_bounds",
    "sc_success",
    "simulate_beliefs",
    "simulate_coverage",
    "simulate_debate",
    "simulate_gain",
    "simulate_majority",
    "simulate_opening",
    "simulate_posterior",
    "simulate_tokens",
    "subjective_tokens",
    "success_ceiling",
    "tolerable_false",
    "update",
    "vanilla_posterior",
]
