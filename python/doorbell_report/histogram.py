# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

"""A Result's latency histogram: 64 buckets an octave, 1 ns wide below 128 (src/loop/histogram.hpp)."""

import math

from . import form
from .results import items

RANGE_END_NS = 2 ** 34  # all operations that took so long or longer share a bucket


def lower_ns(index):
    if index < 128:
        return index
    shift = (index >> 6) - 1
    return (64 + (index & 63)) << shift


def bucket_of(ns):
    if ns < 128:
        return ns
    shift = ns.bit_length() - 7
    return (shift + 1) * 64 + ((ns >> shift) & 63)


def bins_of(latency):
    """[(bucket, count)] in order; entries that are no bin are left out."""
    found = []
    for entry in items(latency, "bins"):
        if isinstance(entry, list) and len(entry) == 2 and all(
                isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2 ** 64 for v in entry) and entry[1]:
            found.append((bucket_of(entry[0]), entry[1]))
    return sorted(found)


def coarse(bins, group, limit):
    """(edges in ns, share in percent) with `group` neighbouring buckets in one bar, up to bucket `limit`."""
    first, last = bins[0][0] // group, min(bins[-1][0], limit) // group
    total = sum(count for _, count in bins)
    shares = [0.0] * (last - first + 1)
    for bucket, count in bins:
        if bucket // group <= last:
            shares[bucket // group - first] += 100.0 * count / total
    edges = [max(lower_ns(i * group), 0.5) for i in range(first, last + 2)]
    return edges, shares


def picture_end(series, fraction=0.005):
    """(last bucket to draw, whether operations lie beyond it): the slowest 0.5 % of each series are left out
    when they would take more than a third of the picture."""
    def cut(bins):
        allowed = fraction * sum(count for _, count in bins)
        kept = list(bins)
        while len(kept) > 1 and kept[-1][1] <= allowed:
            allowed -= kept.pop()[1]
        return kept[-1][0]

    first = min(bins[0][0] for _, bins in series)
    last = max(bins[-1][0] for _, bins in series)
    limit = max(cut(bins) for _, bins in series)
    return (limit, True) if limit - first < 0.67 * (last - first) else (last, False)


def survival(bins):
    """[(operations slower than this bucket, the bucket's middle in ns)] for each bucket."""
    above = sum(count for _, count in bins)
    points = []
    for bucket, count in bins:
        above -= count
        points.append((above, (lower_ns(bucket) + lower_ns(bucket + 1) - 1) / 2))
    return points


def percentile_in_words(bins, percent):
    ns = percentile_in(bins, percent)
    return form.duration(ns) if ns < RANGE_END_NS else f"{form.duration(RANGE_END_NS)} or more"


def percentile_in(bins, percent):
    """The middle of the bucket that holds the percentile, in ns."""
    wanted = math.ceil(percent / 100 * sum(count for _, count in bins))
    reached = 0
    for bucket, count in bins:
        reached += count
        if reached >= wanted:
            break
    return (lower_ns(bucket) + lower_ns(bucket + 1) - 1) / 2
