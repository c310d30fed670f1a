# SPDX-License-Identifier: Apache-2.0
"""Budgets that hold on any machine: ratios to a peer of the same run. They are shown together at the end, and a missed one
makes the bench fail; the other figures depend on the machine and are for people to judge."""

_seen = []  # (what, ratio or None, limit, is the most)


def at_most(what, ours, peer, times):
    """Ours may be so many times the peer's; ours or peer None: it did not run."""
    _seen.append((what, ours / max(peer, 1e-9) if None not in (ours, peer) else None, times, True))


def at_least(what, ours, peer, times):
    _seen.append((what, ours / max(peer, 1e-9) if None not in (ours, peer) else None, times, False))


def are_kept(row):
    """Shows them; False where one is missed. A peer that did not run is no success, and is said."""
    missed = 0
    for what, ratio, limit, is_most in _seen:
        is_good = ratio is None or (ratio <= limit if is_most else ratio >= limit)
        missed += not is_good
        row("ratio: " + what, "not measured" if ratio is None else "%.2f times" % ratio,
            "%s %g" % ("<=" if is_most else ">=", limit), "" if is_good else "MISSED")
    if _seen:
        row("ratios to peers of this run", "%d kept, %d missed, %d not measured" % (
            sum(ratio is not None for _, ratio, _, _ in _seen) - missed, missed, sum(ratio is None for _, ratio, _, _ in _seen)))
    return not missed
