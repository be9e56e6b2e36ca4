# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0
"""Recomputes the figures of a Result from its JSON alone. problems(document) says what does not add up."""

import math
import statistics

PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
DATA_CLASSES = ("corrupt", "misplaced", "stale", "duplicated", "missing")
RANGE_END_NS = 2 ** 34  # where the latency buckets end
CLOSED_LOOPS = ("nvme", "rdma", "cxi", "qdma")  # in these, so many operations are in flight at most
LEAST_ABOVE = 10  # samples above a percentile
# The time between the reading of the clock that begins an operation and the post that begins the window.
CLOCK_SLACK_NS = 50e6


def near(a, b, relative=1e-6):
    return abs(a - b) <= relative * max(abs(a), abs(b)) + 1e-9


def width_ns(lower):
    return 1 if lower < 128 else 2 ** (lower.bit_length() - 7)


def rank_of(count, percent):
    """From 1; None where fewer than ten samples lie above it."""
    millionths = round(percent * 1e4)
    rank = max(1, -(-count * millionths // 1_000_000))
    return rank if count - rank >= LEAST_ABOVE else None


def percentile(latency, percent):
    """From the bins alone."""
    rank = rank_of(latency["count"], percent)
    if rank is None:
        return None
    for lower, count in latency["bins"]:
        rank -= count
        if rank <= 0:
            break
    upper = lower + width_ns(lower) - 1
    if lower >= RANGE_END_NS:
        lower, upper = max(lower, latency["min"]), latency["max"]
        if upper - lower > lower / 64:
            return None
    return min(max((lower + upper) / 2, latency["min"]), latency["max"])


def of_latency(latency):
    count = latency["count"]
    measured = [latency[key] for key in ("min", "mean", "max")]
    if count == 0:
        if latency["bins"] or any(value is not None for value in measured):
            yield "figures of no operation"
        return
    if any(value is None for value in measured):
        yield f"no minimum, mean or maximum of {count} operations"
        return
    low, mean, high = measured
    if not low * (1 - 1e-12) <= mean <= high * (1 + 1e-12):
        yield f"the mean {mean} is not within {low} and {high}"
    std = latency["std"]
    if (std is None) != (count < 2):
        yield f"a standard deviation {std} of {count} operations"
    # No distribution within these ends that has this mean spreads more.
    elif std is not None and std ** 2 * (count - 1) > count * (high - mean) * (mean - low) * (1 + 1e-6) + 1:
        yield f"the standard deviation {std} is impossible within {low} and {high}"
    if not latency["bins"]:  # another program's latency
        for key, percent in PERCENTILES.items():
            if latency[key] is not None and (rank_of(count, percent) is None or not low <= latency[key] <= high):
                yield f"{key} {latency[key]} of {count} operations from {low} to {high}"
        return
    lowers = [lower for lower, _ in latency["bins"]]
    if lowers != sorted(set(lowers)):
        yield "the bins are not in order"
    if sum(n for _, n in latency["bins"]) != count:
        yield f"the bins have {sum(n for _, n in latency['bins'])} operations, not {count}"
    last = lowers[-1]
    if not lowers[0] <= low < lowers[0] + width_ns(lowers[0]) and low < RANGE_END_NS:
        yield f"the minimum {low} is not in the first bin"
    if not last <= high or (last < RANGE_END_NS and high >= last + width_ns(last)):
        yield f"the maximum {high} is not in the last bin"
    if latency.get("beyond_range", 0) != (latency["bins"][-1][1] if last >= RANGE_END_NS else 0):
        yield "beyond_range is not what the last bin says"
    elif last < RANGE_END_NS:
        # Each operation is within its bin, so the mean is within that of the bins' ends.
        least = sum(lower * n for lower, n in latency["bins"]) / count
        most = sum((lower + width_ns(lower) - 1) * n for lower, n in latency["bins"]) / count
        if not least * (1 - 1e-9) <= mean <= most * (1 + 1e-9):
            yield f"the mean {mean} is not what the bins allow, {least} to {most}"
    for key, percent in PERCENTILES.items():
        due = percentile(latency, percent)
        if (due is None) != (latency[key] is None) or (due is not None and not near(due, latency[key])):
            yield f"{key} is {latency[key]}, by the bins {due}"


def of_metrics(metrics):
    elapsed = metrics["elapsed_s"]
    if metrics["ops"] > 0 and not elapsed > 0:
        yield f"{metrics['ops']} operations in {elapsed} s"
    elif elapsed > 0:
        for rate, amount in (("ops_per_s", "ops"), ("bytes_per_s", "bytes")):
            if not near(metrics[rate] * elapsed, metrics[amount]):
                yield f"{rate} {metrics[rate]} x {elapsed} s is not {metrics[amount]}"
    if metrics["latency_ns"]["count"] > metrics["ops"]:
        yield f"{metrics['latency_ns']['count']} latencies of {metrics['ops']} operations"
    yield from of_latency(metrics["latency_ns"])


def median_ranks(n):
    """(low, high, coverage) of the order statistics around the median, as src/measure/statistics.cpp has them."""
    best = (1, n, max(0.0, 1 - 2 * 0.5 ** n))
    tail = 0.5 ** n
    for low in range(2, n // 2 + 1):
        tail += math.comb(n, low - 1) * 0.5 ** n
        if 1 - 2 * tail < 0.95:
            break
        best = (low, n + 1 - low, 1 - 2 * tail)
    return best


def of_spread(cell):
    repeats = cell["repeats"]
    for name, spread in cell["spread"].items():
        values = sorted(r[name] for r in repeats if r.get(name) is not None)
        if len(values) != len(repeats):
            yield f"a spread of {name}, which {len(repeats) - len(values)} repeats do not have"
            continue
        low, high, level = median_ranks(len(values))
        due = {"median": statistics.median(values), "min": values[0], "max": values[-1], "mean": statistics.fmean(values),
               "std": statistics.stdev(values) if len(values) > 1 else None, "ci_low": values[low - 1],
               "ci_high": values[high - 1], "ci_level": level}
        for key, value in due.items():
            if (value is None) != (spread[key] is None) or (value is not None and not near(value, spread[key])):
                yield f"spread.{name}.{key} is {spread[key]}, by the repeats {value}"
        middle = abs(due["median"])
        wide = values[-1] > values[0] and (middle == 0 or (values[-1] - values[0]) / middle > 0.05)
        if wide != spread["noisy"]:
            yield f"spread.{name}.noisy is {spread['noisy']}"


def of_repeats(cell):
    repeats = cell["repeats"]
    if not repeats or "beside" in cell:
        return
    rates = [r["ops_per_s"] for r in repeats]
    order = sorted(range(len(rates)), key=rates.__getitem__)
    median = repeats[order[(len(rates) - 1) // 2]]
    metrics = cell["metrics"]
    for key, value in (("ops_per_s", metrics["ops_per_s"]), ("mean_ns", metrics["latency_ns"]["mean"]),
                       ("p50_ns", metrics["latency_ns"]["p50"]), ("p99_ns", metrics["latency_ns"]["p99"])):
        alike = [r for r in repeats if r["ops_per_s"] == median["ops_per_s"]]
        if not any((r[key] is None) == (value is None) and (value is None or near(r[key], value)) for r in alike):
            yield f"{key} is {value}, of the median repeat {median[key]}"


def of_errors(cell):
    verify, errors = cell["verify"], cell["errors"]
    bad = sum(verify[key] for key in DATA_CLASSES)
    if errors.get("identity", 0):
        yield "the counting identity does not hold"
    if len(verify["first"]) > bad:
        yield f"{len(verify['first'])} places of {bad} failures"
    # Headers of packets are always checked.
    if cell["path"] in CLOSED_LOOPS and verify["mode"] == "none" and (verify["checked"] or verify["corrupt"] or verify["stale"]):
        yield "data was checked although that was off"
    own = cell.get(cell["path"], {})
    if cell["path"] in CLOSED_LOOPS and "completion_statuses" in own:
        statuses = sum(own["completion_statuses"].values())
        if statuses != errors["completion"]:
            yield f"{statuses} completion statuses of {errors['completion']} errors of completion"


def of_cost(cell):
    cost = cell["cost"]
    total = cost["cpu_user_s"] + cost["cpu_system_s"]
    named = sum(t["cpu_s"] for t in cost["threads"])
    ops = cell["metrics"]["ops"]
    clean = not any(cell["errors"].values()) and not any(cell["verify"][key] for key in DATA_CLASSES)
    checking = cost.get("checking")
    if checking is not None and clean and ops:
        named -= checking["cpu_ns_per_op"] * ops * 1e-9
    if cost["threads"] and (checking is None or clean) and abs(named - total) > 1e-6 + 0.001 * total and cell["path"] != "net":
        yield f"the threads' {named} s are not the total of {total} s"
    if cost["cpu_ns_per_op"] is not None and clean and ops and cell["path"] in CLOSED_LOOPS and \
            not near(cost["cpu_ns_per_op"] * ops, total * 1e9, 1e-4):
        yield f"cpu_ns_per_op {cost['cpu_ns_per_op']} x {ops} is not {total} s"
    own = cell.get(cell["path"], {})
    if cell["path"] in CLOSED_LOOPS and cost["doorbells_per_op"] is not None and own.get("sq_doorbells_per_op") is not None and \
            own.get("cq_doorbells_per_op") is not None and \
            not near(cost["doorbells_per_op"], own["sq_doorbells_per_op"] + own["cq_doorbells_per_op"]):
        yield "doorbells_per_op is not the sum of both kinds"
    # A thread cannot work longer than the time around it.
    window = cost.get("elapsed_s")
    if window is not None:
        for thread in cost["threads"]:
            if thread["cpu_s"] > window * 1.001 + 1e-4:
                yield f"{thread['cpu_s']} s of CPU time of {thread['name']} in {window} s"
        if window < cell["metrics"]["elapsed_s"] * (1 - 1e-3) - 1e-5:
            yield f"{cell['metrics']['elapsed_s']} s elapsed in {window} s"


def of_closed_loop(cell):
    """Little's law, the sums of the parts, sizes, and what was submitted."""
    shape, metrics, path = cell["cell"], cell["metrics"], cell["path"]
    own, errors = cell.get(path, {}), cell["errors"]
    size = shape.get("io_bytes", shape.get("size_bytes"))
    if size is not None and metrics["bytes"] != metrics["ops"] * size:
        yield f"{metrics['bytes']} bytes are not {metrics['ops']} operations of {size}"
    if size is not None and cell["verify"]["checked_bytes"] != cell["verify"]["checked"] * size:
        yield f"checked_bytes {cell['verify']['checked_bytes']} are not {cell['verify']['checked']} x {size}"
    queues = shape.get("queues", shape.get("queue_pairs"))
    latency = metrics["latency_ns"]
    if queues and shape.get("in_flight") and latency["mean"] is not None and cell["initiator"]["kind"] == "cpu":
        slots = queues * max(shape["in_flight"], shape.get("batch", 1))
        if latency["mean"] * latency["count"] > slots * (metrics["elapsed_s"] * 1e9 * 1.01 + CLOCK_SLACK_NS):
            yield f"Little's law: {latency['count']} x {latency['mean']} ns in {metrics['elapsed_s']} s with {slots} in flight"
        if latency["max"] > metrics["elapsed_s"] * 1e9 * 1.01 + CLOCK_SLACK_NS:
            yield f"a latency of {latency['max']} ns in {metrics['elapsed_s']} s"
    parts = [own[name] for name in ("write", "read") if path == "nvme" and isinstance(own.get(name), dict)]
    if parts:
        for key in ("ops", "bytes", "elapsed_s"):
            if not near(sum(p[key] for p in parts), metrics[key]):
                yield f"the parts' {key} {[p[key] for p in parts]} are not {metrics[key]} together"
        for part in parts:
            yield from of_metrics(part)
    repeats = cell["repeats"]
    if len(repeats) == 1 and "submitted" in own and cell["options"].get("warmup_s") in (None, 0) and \
            cell["options"].get("duration_s") is None:
        ended = metrics["ops"] + errors["completion"] + errors["timeout"] + errors.get("aborted", 0)
        if own["submitted"] != ended:
            yield f"{own['submitted']} submitted, {ended} ended"
    steps = cell["substeps_ns"]
    if steps["total"] is not None and not any(errors.values()):
        own_steps = [steps[key] or 0 for key in ("build", "enqueue", "sq_doorbell", "cq_poll", "cq_doorbell")]
        if shape.get("batch") == 1 and shape.get("in_flight") == 1 and sum(own_steps) > steps["total"] * 1.05 + 2000:
            yield f"the steps take {sum(own_steps)} ns of {steps['total']}"
    single = own.get("single_operation")
    if isinstance(single, dict):
        yield from of_single(single, metrics, size, len(repeats))


def of_single(single, metrics, size, repeats):
    """Rates that follow from each operation's own latency."""
    latency = single["latency_ns"]
    if not near(single["ops_per_s"]["min"] * latency["max"], 1e9) or not near(single["ops_per_s"]["max"] * latency["min"], 1e9):
        yield "the least and greatest rate of a single operation are not those of its latency"
    for key in ("min", "mean", "std", "max"):
        if size is not None and not near(single["bytes_per_s"][key], single["ops_per_s"][key] * size):
            yield f"single_operation.bytes_per_s.{key} is not the rate times {size}"
    if repeats == 1 and (single["count"] != metrics["latency_ns"]["count"] or
                         not near(latency["mean"], metrics["latency_ns"]["mean"])):
        yield "the single operations are not those of the only repeat"


FRAME_BYTES = {"udp4": 14 + 20 + 8, "udp6": 14 + 40 + 8, "bare": 14}
L1_BYTES = 24  # preamble, gap and check sequence of a frame


def of_net(cell):
    metrics, net, drops = cell["metrics"], cell["net"], cell["drops"]
    if not near(net["goodput_gbps"], metrics["bytes_per_s"] * 8e-9):
        yield f"goodput {net['goodput_gbps']} is not {metrics['bytes_per_s']} bytes a second"
    if not near(net["mpps"], metrics["ops_per_s"] * 1e-6):
        yield f"mpps {net['mpps']} is not {metrics['ops_per_s']} a second"
    if not net["goodput_gbps"] <= net["l2_gbps"] * (1 + 1e-9) or not net["l2_gbps"] <= net["l1_gbps"] * (1 + 1e-9):
        yield "goodput, l2 and l1 are not in this order"
    shape = cell["cell"]
    if shape["stream"] == "raw" and net["goodput_gbps"] > 0:
        header = FRAME_BYTES[shape.get("encapsulation", "udp4")]
        for key, more in (("l2_gbps", header), ("l1_gbps", header + L1_BYTES)):
            if not near(net[key] / net["goodput_gbps"], (metrics["bytes"] + metrics["ops"] * more) / metrics["bytes"]):
                yield f"{key} {net[key]} is not {net['goodput_gbps']} with {more} bytes more a packet"
    if net["sent"] != net["unique"] + net["lost"]:
        yield f"{net['sent']} sent, {net['unique']} arrived, {net['lost']} lost"
    if net["sent"] and not near(net["lost_percent"], 100 * net["lost"] / net["sent"]):
        yield f"lost_percent {net['lost_percent']} is not {net['lost']} of {net['sent']}"
    if sum(r["sent"] for r in net["repeats"]) > net["sent"] or sum(r["unique"] for r in net["repeats"]) > net["unique"]:
        yield "the repeats sent or received more than the run"
    for repeat, other in zip(net["repeats"], cell["repeats"]):
        if not near(repeat["rx_gbps"], other["bytes_per_s"] * 8e-9):
            yield f"a repeat's rx_gbps {repeat['rx_gbps']} is not {other['bytes_per_s']} bytes a second"
    # Null where a counter of others' packets too explains more than was lost.
    if drops["unexplained"] is not None and sum(drops.values()) != net["lost"]:
        yield f"the drops {drops} are not the {net['lost']} that were lost"
    # A loss that is explained and allowed is no failure.
    if cell["verify"]["missing"] not in (net["lost"] - drops["not_whole"], drops["unexplained"] or 0):
        yield f"{cell['verify']['missing']} missing, {net['lost']} lost by {drops}"
    size = shape["payload_bytes"]
    if metrics["bytes"] != metrics["ops"] * size:
        yield f"{metrics['bytes']} bytes are not {metrics['ops']} packets of {size}"
    # Another's time of sending is no latency, and none is longer than the time in which it was measured.
    latency = metrics["latency_ns"]
    if latency["min"] == 0:
        yield "a latency of 0"
    if latency["max"] is not None and latency["max"] > metrics["elapsed_s"] * 1e9 * 1.01 + CLOCK_SLACK_NS:
        yield f"a latency of {latency['max']} ns in {metrics['elapsed_s']} s"
    for repeat in net["repeats"]:
        if repeat["seconds"] > 0 and not near(repeat["tx_gbps"] * repeat["seconds"], repeat["sent"] * size * 8e-9):
            yield f"tx_gbps {repeat['tx_gbps']} x {repeat['seconds']} s is not {repeat['sent']} packets of {size}"
        # Packets that have arrived had been sent by then.
        if repeat["unique"] == repeat["sent"] and repeat["tx_gbps"] < repeat["rx_gbps"] * (1 - 1e-9):
            yield f"sent at {repeat['tx_gbps']} Gb/s, received at {repeat['rx_gbps']}"
    for key, gap in (("l2_gbps", 0), ("l1_gbps", L1_BYTES)):
        more = net["frames_per_packet"] * (net["frame_overhead_bytes"] + gap) / size
        if not near(net[key], net["goodput_gbps"] * (1 + more)):
            yield f"{key} {net[key]} is not {net['goodput_gbps']} and {more} more"
    latency = metrics["latency_ns"]
    if latency["max"] is not None and latency["max"] > metrics["elapsed_s"] * 1e9 + CLOCK_SLACK_NS:
        yield f"a latency of {latency['max']} ns in {metrics['elapsed_s']} s"
    for thread in cell["threads"]["list"]:
        if thread["busy_percent"] * thread["seconds"] > 100 * (thread["seconds"] * 1.001 + 1e-4):
            yield f"{thread['role']} {thread['index']} used {thread['busy_percent']} % of {thread['seconds']} s"
    windows = cell.get("windows", {})
    if net["lost"] == 0 and windows.get("windows") != windows.get("windows_due"):
        yield f"{windows['windows']} windows of {windows['windows_due']}"


def of_verdict(document):
    """The exit code is what the cells say."""
    code = document["exit_code"]
    for cell in document["cells"]:
        wrong = {k: cell["verify"][k] for k in ("corrupt", "misplaced", "stale", "duplicated") if cell["verify"][k]}
        wrong |= {k: v for k, v in cell["errors"].items() if v}
        if wrong and code != 2:
            yield f"exit code {code} with {wrong}"
        if code == 0 and document["complete"] and cell["path"] in CLOSED_LOOPS and cell["verify"]["missing"]:
            yield "exit code 0 with data that is missing"
    if code == 0 and not document["cells"]:
        yield "exit code 0 without a cell"


def problems(document):
    """The contradictions in a document, each with its cell."""
    found = [f"verdict: {p}" for p in of_verdict(document)]
    for number, cell in enumerate(document["cells"]):
        rules = [of_metrics(cell["metrics"]), of_spread(cell), of_repeats(cell), of_errors(cell), of_cost(cell)]
        if cell["path"] in CLOSED_LOOPS:
            rules.append(of_closed_loop(cell))
        if "net" in cell and "drops" in cell:
            rules.append(of_net(cell))
        for rule in rules:
            found += [f"cell {number}: {p}" for p in rule]
    return found
