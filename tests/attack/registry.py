"""registry.py: the attacks that ./dev attack carries out: one line each. Add a line, and what it does
to tests/attack/evil.h, or a program of its own.

row       of the table in docs/security.md, or "own" for one that was not in it
evil      what RIVULET_EVIL says to rivulet-worker-evil (evil.h), or RANDOM_TEXT
program   another patched worker that does it, with RIVULET_EVIL or without
config    more of the run's configuration, for the honest run beside it too
cheats    what it does to training: "weights" (contributions), "means", or nothing: then the lab has it too,
          if it cheats with weights
names     how the attacker is to be named: the events of the coordinator's log, one of them; () if it
          costs the run nothing, so that nobody need be named
missing   why it is not named, or the model suffers, yet; the attack is carried out and shown all the same,
          and fails if it costs more attempts or rounds than others may, ends an honest worker or has one named
short     it is in `./dev test` too
"""
from collections import namedtuple

from attacked_run import RANDOM_TEXT

Attack = namedtuple("Attack", "name row evil program config cheats names missing short")

OUTLIERS = ("outlier_cosine", "outlier_clipped", "outlier_loss")
AUDITED = {"audit-chunks": 8, "audit-rollback": "true"}
# As the preset `strangers` has it.
STRANGERS = {"audit-chunks": 2, "audit-window": 8, "audit-rollback": "true", "merge": "agreed", "ownership": "equal"}
SCORED = {"audit-training": 0.5, "audit-window": 15}
WORTHLESS = ("training_worthless",)
REPEATED = {**SCORED, "audit-training": 1, "audit-repeat": 1}
UNREPEATED = ("training_not_repeated",)
COPIED = "it points where the run goes, at the usual norm: only audits that repeat the steps tell it (audit-repeat)"
SMALL = "in so small a run an auditor's own gain is often within four errors of nothing: it measures nothing"
PROOFS = ("audit_lied", "banned", "equivocated", "two_roots")
VOTES = ("disagreed", "false_vote", "no_evidence")
STALLS = ("suspected", "overdue", "excluded", "mute")


def attack(name, row, evil=None, program=None, config=None, cheats="", names=(), missing="", short=False):
    return Attack(name, row, evil, program, config or {}, cheats, names, missing, short)


ATTACKS = [
    # contributions
    attack("x10", 6, "scale=10", cheats="weights", names=OUTLIERS),
    attack("x100", 6, "scale=100", cheats="weights", names=OUTLIERS),
    attack("x1000", 6, "scale=1000", cheats="weights", names=OUTLIERS),
    attack("x-1", 7, "scale=-1", cheats="weights", names=OUTLIERS),
    attack("x-4", 7, "scale=-4", cheats="weights", names=OUTLIERS),
    attack("noise of its norm", 8, "noise=1", cheats="weights", names=OUTLIERS),
    attack("noise x10", 8, "noise=10", cheats="weights", names=OUTLIERS),
    attack("zeros", 8, "zero=1", cheats="weights", names=OUTLIERS),
    attack("stale", 8, "stale=1", cheats="weights", names=OUTLIERS),
    attack("one late round x100", 9, "scale=100,from=8,until=9", cheats="weights", short=True),
    attack("random letters as its text", 10, RANDOM_TEXT, names=OUTLIERS),
    attack("a backdoor, x4 in the last three rounds", 10, "text=trigger,scale=4,from=9",
           missing="its sentence is learnt; nothing finds what is of the usual norm"),
    attack("x-4 and 1000 times the tokens", 12, "scale=-4,tokens=1024000", config={"weight-by-tokens": "true"},
           cheats="weights", names=("tokens", *OUTLIERS), short=True),
    attack("rides free every other round", "own", "half=1", cheats="weights"),
    attack("copies the momentum at its own norm", "own", "copies=1", cheats="weights", names=OUTLIERS, missing=COPIED),
    # the same where training is audited
    attack("zeros, audited", 8, "zero=1", config=SCORED, names=WORTHLESS),
    attack("noise of its norm, audited", 8, "noise=1", config=SCORED, names=WORTHLESS),
    attack("stale, audited", 8, "stale=1", config=SCORED, names=WORTHLESS, missing=SMALL),
    attack("the same few sequences, audited", 10, "other=16", config=SCORED, names=WORTHLESS, missing=SMALL),
    attack("x-1, audited", 7, "scale=-1", config=SCORED, names=WORTHLESS),
    attack("rides free every other round, audited", "own", "half=1", config=SCORED, names=WORTHLESS, missing=SMALL),
    attack("copies the momentum at its own norm, audited", "own", "copies=1,nap=1", config=SCORED, names=WORTHLESS, missing=COPIED),
    # the same where its steps are made again; it naps, so that rounds last as long as audits need
    attack("half of the steps, repeated", "own", "lazy=1,nap=1", config=REPEATED, names=UNREPEATED),
    attack("stale, repeated", 8, "stale=1,nap=1", config=REPEATED, names=UNREPEATED),
    attack("the same few sequences, repeated", 10, "other=16,nap=1", config=REPEATED, names=UNREPEATED),
    attack("rides free every other round, repeated", "own", "half=1,nap=1", config=REPEATED, names=UNREPEATED),
    attack("copies the momentum at its own norm, repeated", "own", "copies=1,nap=1", config=REPEATED, names=UNREPEATED),
    attack("keeps auditors away, audited", "own", "cut=1,zero=1,nap=6",
           config={**SCORED, "audit-window": 6}, names=("training_evaded", "withheld", *WORTHLESS)),
    # means
    attack("means x64", 11, "mean=64", config=AUDITED, cheats="means", names=PROOFS),
    attack("means x-1", 11, "mean=-1", config=AUDITED, cheats="means", names=PROOFS),
    attack("means x1e30", "own", "mean=1e30", cheats="means", names=STALLS, short=True),
    attack("means x5000", "own", "mean=5000", config=AUDITED, cheats="means", names=PROOFS),
    attack("one chunk a round x64", "own", "mean=64,every=17,nap=1", config=STRANGERS, cheats="means", names=PROOFS),
    attack("one chunk a round x5000", "own", "mean=5000,every=17,nap=1", config=STRANGERS, cheats="means", names=PROOFS),
    attack("one chunk a round x-4", "own", "mean=-4,every=17,nap=1", config=STRANGERS, cheats="means", names=PROOFS),
    attack("one chunk a round x-1", "own", "mean=-1,every=17,nap=1", config=STRANGERS, cheats="means", names=PROOFS),
    attack("one chunk a round x0", "own", "mean=0,every=17,nap=1", config=STRANGERS, cheats="means"),
    attack("means of NaN", "own", program="rivulet-worker-spoiler", cheats="means", names=STALLS),
    attack("another mean for each peer", 4, "unlike=1", cheats="means", names=(*PROOFS, *STALLS)),
    attack("two signed lists of means", 4, "equivocates=1", cheats="means", names=PROOFS),
    attack("seals that are not its own", 4, "false_seal=1", cheats="means", names=STALLS),
    attack("another contribution than committed", 4, "changes=1", names=STALLS),
    attack("two signed contributions", 16, "two_roots=1", names=PROOFS),
    attack("a contribution that is not signed", 16, "false_root=1"),
    attack("means x64, hides its contribution from auditors", "own", "mean=64,hides=1,nap=1", config=AUDITED, cheats="means",
           names=("withheld", *PROOFS)),
    attack("means x64, shows its contribution to one auditor only", "own", "mean=64,hides=1,shows=1,nap=1", config=AUDITED,
           cheats="means", names=("withheld", *PROOFS)),
    attack("zeros, shown to one auditor only", "own", "zero=1,hides=1,shows=1,nap=1", config=SCORED,
           names=("withheld", *WORTHLESS)),
    attack("means x64, keeps auditors away", "own", "mean=64,cut=1,nap=1", config=AUDITED, cheats="means",
           names=PROOFS),
    attack("means x-1, keeps auditors away", "own", "mean=-1,cut=1,nap=1", config=AUDITED, cheats="means", names=PROOFS),
    attack("another contribution for one, which it accuses", "own", "changes=1,suspects=1,victim=2",
           names=(*STALLS, "at_odds")),
    attack("trains just fast enough", "own", "nap=6"),
    # reports
    attack("tokens 2^62", 1, "tokens=4611686018427387904", names=("tokens",), short=True),
    attack("7 chunks", 2, "chunks=7", names=("wrong_size",), short=True),
    attack("loss 3.3e38", 13, "loss=3.3e38", names=OUTLIERS),
    attack("a held-out loss of 0.5", "own", "heldout=0.5"),
    attack("accuses one", 14, "suspects=1", names=(*STALLS, "at_odds"), short=True),
    attack("accuses all", 14, "suspects=64", names=STALLS),
    attack("votes for what nobody holds", 15, "digest=1", names=VOTES, short=True),
    attack("claims another full state", 15, "state=1", config={"snapshot-every": 2}, names=("diverged",)),
    attack("trains for ever", 17, "ghost=1", names=("in_vain",)),
    attack("claims a later round", 18, "ahead=3", names=("ahead",)),
    attack("moves at every report", 20, "moves=1", short=True),
    attack("a line of 1e15 bytes/s", "own", "rate=1000000000000000"),
    attack("a line of 1 byte/s", "own", "rate=1"),
    attack("a line of 1 byte/s where slow members rest", "own", "rate=1", config={"slow-members": "skip"}),
    attack("fetches the first round for ever", "own", "behind=1"),
    attack("reaches nobody", "own", "apart=1"),
    attack("lies about what it measured", "own", "measured=1"),
    # what it sends
    attack("withholds contributions, its PINGs rise", 5, "withhold=1", names=STALLS),
    attack("withholds means, its PINGs rise", 5, "withhold=2", names=STALLS),
    attack("withholds all", 16, "withhold=3", names=STALLS),
    attack("withholds all, then says that it lost its state", 16, "withhold=3,syncs=2", names=("unsteady",), short=True),
    # what it does to one other: both owe each other nothing afterwards, and nobody need be named
    attack("withholds contributions from one", 16, "withhold=1,victim=0", short=True),
    attack("withholds means from one", 16, "withhold=2,victim=0"),
    attack("withholds means, and always accuses the same one", 16, "withhold=2,suspects=1,accused=0,lies_from=1"),
    attack("another mean for one peer", 3, "unlike=1,victim=0"),
    attack("two signed lists, one for one peer", 4, "equivocates=1,victim=0", cheats="means", names=PROOFS),
    attack("a seal that is not its own for one peer", 4, "false_seal=1,victim=0"),
    attack("another contribution for one peer", 4, "changes=1,victim=0"),
    attack("one byte a second", 16, program="rivulet-worker-drip", names=STALLS),
    attack("fetches for ever", 22, program="rivulet-worker-greedy"),
]

# What no worker of a run can do, or not beside others: tests carry it out. BIN is the folder of the built programs.
Other = namedtuple("Other", "name row command")
OTHERS = [
    Other("names others' addresses as its own", 19, ("test_attack_candidates.py", "BIN", "--rounds", "12", "--lies", "mixed")),
    Other("a coordinator has its members dial a bystander", 28, ("test_attack_coordinator.py", "BIN")),
    Other("holds all long polls; a thousand keys of one link", "21, 23", ("test_attack_keys",)),
    Other("frames: malformed, replayed, oversized, of another run", 24, ("test_e2e_attacks",)),
    Other("a coordinator shows another run than it hands out", 29, ("test_attack_consent",)),
    Other("a coordinator asks for more later", 29, ("test_e2e_agreed",)),
    Other("the serving key is stolen", 30, ("test_e2e_serving_key",)),
    Other("guesses tokens, floods pages and polls, as a client", "21", ("test_coordinator_attacks",)),
]
