# SPDX-License-Identifier: Apache-2.0
"""What a hop's pairs are worth, and the table of all hops."""

from dataclasses import dataclass, field

from load import id_in


@dataclass
class Score:
    hop: str
    sent: int = 0  # Requests that get to the event behind.
    seen: int = 0  # Events behind with the id of one of them.
    right: int = 0
    wrong: int = 0
    orphans: int = 0  # Of those seen, without a pair.
    missing: int = 0  # Requests that no event behind was seen of.
    foreign: int = 0  # Events behind without the id of such a request.
    error: str = ""
    summary: dict = field(default_factory=dict)

    @property
    def pairs(self):
        return self.right + self.wrong

    @property
    def precision(self):
        return self.right / self.pairs if self.pairs else None

    @property
    def recall(self):
        return self.pairs / self.seen if self.seen else None

    def as_json(self):
        counts = {name: getattr(self, name) for name in (
            "hop", "sent", "seen", "pairs", "right", "wrong", "orphans", "missing", "foreign",
            "precision", "recall", "summary")}
        return {**counts, "error": self.error} if self.error else counts

    def meets(self, precision_min, recall_min):
        """Whether there was something to judge, and it was good enough; without pairs nothing is
        wrong, and what was not seen is not right either."""
        return (not self.error and self.seen > 0 and self.recall >= recall_min
                and (self.precision is None or self.precision >= precision_min))


def judge(hop, rows, sent_ids, summary):
    """`rows` have the text `front`, or None, and the text `behind`."""
    score = Score(hop, sent=len(sent_ids), summary=summary)
    met = set()
    for row in rows:
        identity = id_in(row["behind"])
        if identity not in sent_ids:
            score.foreign += 1
            continue
        met.add(identity)
        score.seen += 1
        if row["front"] is None:
            score.orphans += 1
        elif id_in(row["front"]) == identity:
            score.right += 1
        else:
            score.wrong += 1
    score.missing = len(sent_ids) - len(met)
    return score


COLUMNS = ("sent", "seen", "pairs", "wrong", "orphans", "missing")


def _share(value):
    return "-" if value is None else f"{value:.4f}"


def _said(summary):
    """Of the classes, and of what was missed or dropped."""
    counts = {**summary.get("by_cause", {}), **summary.get("missed", {}),
              **summary.get("dropped", {})}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def heading():
    return (f"{'hop':19}" + "".join(f"{name:>8}" for name in COLUMNS)
            + f"{'precision':>11}{'recall':>8}  the summary says")


def line(score):
    if score.error:
        return f"{score.hop:19}  {score.error}"
    return (f"{score.hop:19}" + "".join(f"{getattr(score, name):>8}" for name in COLUMNS)
            + f"{_share(score.precision):>11}{_share(score.recall):>8}  {_said(score.summary)}")
