# SPDX-License-Identifier: Apache-2.0
"""Compares a server's answers with the tally of tests/tools/fleet:

    fleet_check.py --server URL --tally FILE [--tally FILE …] [--questions N] [--seed N] [--match SELECTOR]

Asks for all of it and N (20) random combinations of type, selector, group_by, range and value, then for labels,
types and agents, and prints every difference. Exit status: 0 none, 1 some. As a module: check(url, [tally, …]).

Several tallies are several runs against one server: each run's hosts are the same ones, restarted.
Reports that were never answered ("maybe") may be there or not: a stack may then have any count between.
"""
import argparse
import collections
import json
import random
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

MINUTE = 60000
LABELS = ("host", "region", "process", "service", "container", "pod", "namespace", "version")


class Tally:
    def __init__(self, *paths):
        self.templates, self.hosts, self.reports, self.types = {}, {}, [], []
        for run, path in enumerate(paths):
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    self.read(run, line)
        self.from_ms = min((r["minute"] for r in self.reports), default=0)
        self.until_ms = max((r["minute"] for r in self.reports), default=0) + MINUTE
        self.count_hosts()

    def read(self, run, line):
        kind, _, rest = line.partition(" ")
        if kind == "report":
            host, life, seq, template, time_ms, fresh, taken, lost, state = rest.split()
            self.reports.append({
                "run": run, "host": int(host), "life": int(life), "seq": int(seq), "template": (run, int(template)),
                "minute": int(time_ms) // MINUTE * MINUTE, "fresh": fresh, "taken": int(taken), "lost": int(lost),
                "state": state})
        elif kind == "template":
            number, _, text = rest.partition(" ")
            self.templates[run, int(number)] = json.loads(text)["profiles"]
        elif kind == "host":
            number, _, text = rest.partition(" ")
            self.hosts[int(number)] = json.loads(text)
        elif kind == "fleet":
            self.types += [t for t in json.loads(rest)["types"] if t not in self.types]

    def count_hosts(self):
        """What each report adds to its host's taken and lost: the difference to the last one that was answered."""
        last = {}
        for report in self.reports:
            if report["state"] not in "ap":
                report["taken_more"] = report["lost_more"] = 0
                continue
            key = report["run"], report["host"], report["life"]
            taken, lost = last.get(key, (0, 0))
            report["taken_more"], report["lost_more"] = report["taken"] - taken, report["lost"] - lost
            last[key] = report["taken"], report["lost"]

    def has_doubt(self):
        return any(r["state"] in "mp" for r in self.reports)

    def each(self, type_, wanted, from_ms, until_ms):
        """(labels, profile, template, fresh, minute, number of reports, of which maybe)"""
        met = collections.Counter()
        maybe = collections.Counter()
        for report in self.reports:
            if report["state"] == "r" or not from_ms <= report["minute"] < until_ms:
                continue
            key = report["host"], report["template"], report["fresh"]
            met[key] += 1
            maybe[key] += report["state"] != "a"
        kept = {}
        for (host, template, fresh), count in met.items():
            for number, profile in enumerate(self.templates[template]):
                if type_ and profile["type"] != type_:
                    continue
                series = host, template, number
                if series not in kept:
                    labels = dict(profile["labels"], **self.hosts[host])
                    kept[series] = labels if wanted(labels) else None
                if kept[series]:
                    yield kept[series], profile, fresh, count, maybe[host, template, fresh]

    def folded(self, question):
        """{shown stack: [least, most]}, and the hosts that have some."""
        rows, hosts = collections.defaultdict(lambda: [0, 0]), set()
        for labels, profile, fresh, count, maybe in self.each(
                question.type, question.series_wanted, question.from_ms, question.until_ms):
            heads = [shown(labels.get(name, "[no %s]" % name)) if name != "thread" else None
                     for name in question.groups]
            for thread, stack, samples, value in profile["samples"]:
                if not question.thread_wanted(thread):
                    continue
                if maybe < count:
                    hosts.add(labels["host"])
                path = ";".join([shown(thread) if head is None else head for head in heads] +
                                [stack.replace("@", fresh)])
                amount = samples if question.value == "samples" else value
                rows[path][0] += amount * (count - maybe)
                rows[path][1] += amount * count
        return rows, hosts

    def account(self, question):
        """(taken, lost) of the hosts that have a wanted series in range; of all without a selector."""
        hosts = {labels["host"] for labels, *_ in self.each(
            question.type, question.series_wanted, question.from_ms, question.until_ms)}
        taken = lost = 0
        for report in self.reports:
            if question.from_ms <= report["minute"] < question.until_ms and \
                    (not question.matchers or self.hosts[report["host"]]["host"] in hosts):
                taken += report["taken_more"]
                lost += report["lost_more"]
        return taken, lost

    def agents(self):
        """What each host's agent counted since its last start."""
        last = {}
        for report in self.reports:
            if report["state"] in "ap":
                last[self.hosts[report["host"]]["host"]] = report["taken"], report["lost"]
        return last


def shown(text):
    """As the folded format shows it."""
    return re.sub("[;\x00-\x1f\x7f]", "_", text)


class Question:
    def __init__(self, type_, matchers=(), groups=("process",), from_ms=0, until_ms=0, value="value"):
        self.type, self.matchers, self.groups, self.value = type_, list(matchers), list(groups), value
        self.from_ms, self.until_ms = from_ms, until_ms

    def selector(self):
        return "{%s}" % ",".join('%s%s"%s"' % (name, how, text.replace("\\", "\\\\").replace('"', '\\"'))
                                 for name, how, text in self.matchers)

    def parameters(self, **more):
        made = {"type": self.type, "from": self.from_ms, "until": self.until_ms,
                "group_by": ",".join(self.groups), "value": self.value}
        if self.matchers:
            made["match"] = self.selector()
        return dict(made, **more)

    @staticmethod
    def fits(how, text, value):
        if how in ("=", "!="):
            return (value == text) == (how == "=")
        return bool(re.fullmatch(text, value)) == (how == "=~")

    def series_wanted(self, labels):
        return all(self.fits(how, text, labels.get(name, ""))
                   for name, how, text in self.matchers if name != "thread")

    def thread_wanted(self, thread):
        return all(self.fits(how, text, thread) for name, how, text in self.matchers if name == "thread")

    def __str__(self):
        return "%s %s by %s, %s, %s…%s" % (self.type, self.selector(), ",".join(self.groups) or "nothing", self.value,
                                           self.from_ms, self.until_ms)


class Checker:
    def __init__(self, url, tally, say=print):
        self.url, self.tally, self.say = url, tally, say
        self.questions = self.differences = self.rows = self.doubtful = self.cut = 0

    def get(self, path, parameters, timeout=120):
        try:
            with urllib.request.urlopen(self.url + path + "?" + urllib.parse.urlencode(parameters),
                                        timeout=timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return self.differ(path, "%d %s" % (error.code, error.read()[:300])) or b""

    def differ(self, what, why):
        self.differences += 1
        self.say("%s: %s" % (what, why))

    def ask(self, question):
        """One question: folded stacks, then the accounting of the same."""
        self.questions += 1
        asked = question.from_ms, question.until_ms
        text = self.get("/api/v1/flamegraph", question.parameters(format="json", max_nodes=1))
        if not text:
            return
        answer = json.loads(text)
        question.from_ms, question.until_ms = answer["from"], answer["until"]
        if question.from_ms > asked[0] or question.until_ms < asked[1] or \
                asked[0] - question.from_ms >= 3600000 or question.until_ms - asked[1] >= 3600000:
            self.differ(question, "asked for %d…%d, answered for %d…%d" % (*asked, answer["from"], answer["until"]))
        wanted, hosts = self.tally.folded(question)
        self.compare_account(question, answer["accounting"], wanted, hosts)
        folded = self.get("/api/v1/flamegraph", question.parameters(format="folded", max_nodes=1000000)).decode()
        self.compare_rows(question, folded, wanted)

    def compare_rows(self, question, folded, wanted):
        got = {}
        for line in folded.splitlines():
            stack, _, amount = line.rpartition(" ")
            got[stack] = got.get(stack, 0) + int(amount)
        self.rows += len(got)
        if any(stack.endswith("[cut]") for stack in got):
            self.cut += 1  # more nodes than an answer may have: only the sums could be compared
            return
        wrong = []
        for stack in set(got) | set(wanted):
            least, most = wanted.get(stack, (0, 0))
            if not least <= got.get(stack, 0) <= most:
                wrong.append("%d instead of %s of %s" % (
                    got.get(stack, 0), least if least == most else "%d to %d" % (least, most), stack))
            self.doubtful += least != most
        if wrong:
            self.differ(question, "%d of %d stacks differ, sums %d and %d, such as\n    %s" % (
                len(wrong), len(wanted), sum(got.values()), sum(w[0] for w in wanted.values()),
                "\n    ".join(sorted(wrong)[:3])))

    def compare_account(self, question, account, wanted, hosts):
        amount = "samples" if question.value == "samples" else "value"
        least, most = sum(w[0] for w in wanted.values()), sum(w[1] for w in wanted.values())
        if not least <= account[amount] <= most:
            self.differ(question, "accounting.%s is %d, not %d" % (amount, account[amount], least))
        if self.tally.has_doubt() or question.type != "on-cpu":
            return
        taken, lost = self.tally.account(question)
        if (account["taken"], account["lost"]) != (taken, lost):
            self.differ(question, "taken and lost are %d and %d, not %d and %d" % (
                account["taken"], account["lost"], taken, lost))

    def ask_listings(self, from_ms, until_ms):
        """Labels' values and types of the whole, when there is no doubt about any report."""
        if self.tally.has_doubt():
            return
        sums = collections.Counter()
        for labels, profile, _, count, _ in self.tally.each(None, lambda labels: True, from_ms, until_ms):
            for thread, _, samples, value in profile["samples"]:
                sums["type", profile["type"]] += samples * count
                sums["value", profile["type"]] += value * count
                sums["thread", thread] += samples * count
                for name, text in labels.items():
                    sums[name, text] += samples * count
        range_ = {"from": from_ms, "until": until_ms}
        types = json.loads(self.get("/api/v1/types", range_) or "{}").get("types", [])
        got = {(t.get("name") or t.get("type")): (t["samples"], t["value"]) for t in types}
        self.compare("types", got, {t: (sums["type", t], sums["value", t]) for k, t in list(sums) if k == "type"})
        for label in LABELS + ("thread",):
            values = json.loads(self.get("/api/v1/labels/" + label, range_) or "{}").get("values", [])
            self.compare("values of " + label, {v["value"]: v["samples"] for v in values},
                         {text: count for (name, text), count in sums.items() if name == label})

    def ask_agents(self):
        if self.tally.has_doubt():
            return
        agents = json.loads(self.get("/api/v1/agents", {}) or "{}").get("agents", [])
        self.compare("agents (taken, lost)", {a["host"]: (a["taken"], a["lost"]) for a in agents}, self.tally.agents())

    def compare(self, what, got, wanted):
        self.questions += 1
        wrong = ["%s: %s instead of %s" % (key, got.get(key), wanted.get(key))
                 for key in sorted(set(got) | set(wanted)) if got.get(key) != wanted.get(key)]
        if wrong:
            self.differ(what, "%d of %d differ, such as\n    %s" % (len(wrong), len(wanted), "\n    ".join(wrong[:3])))


def matcher(tally, generator):
    """A random one that some label, or a thread, may pass."""
    template = tally.templates[generator.choice(list(tally.templates))]
    profile = generator.choice(template)
    host = tally.hosts[generator.choice(list(tally.hosts))]
    labels = dict(profile["labels"], **host, thread=generator.choice(profile["samples"])[0])
    name = generator.choice(sorted(labels))
    text = labels[name]
    how = generator.choice(["=", "=", "!=", "=~", "=~", "!~"])
    if how in ("=~", "!~"):
        cut = generator.randrange(1, len(text) + 1)
        text = generator.choice([re.escape(text[:cut]) + ".*", ".*" + re.escape(text[cut - 1:]),
                                 re.escape(text) + "|nothing"]).replace("\\ ", " ").replace("\\;", ";")
    return name, how, text


def random_question(tally, generator):
    matchers = [matcher(tally, generator) for _ in range(generator.choice([0, 1, 1, 2, 3]))]
    groups = generator.sample(LABELS + ("thread",), generator.choice([0, 1, 2, 3]))
    minutes = sorted({r["minute"] for r in tally.reports} or {0})
    from_ms, until_ms = tally.from_ms, tally.until_ms
    if generator.random() < 0.6:
        from_ms = generator.choice(minutes)
        until_ms = generator.choice([m for m in minutes if m >= from_ms]) + MINUTE
    return Question(generator.choice(tally.types), matchers, groups, from_ms, until_ms,
                    generator.choice(["value", "samples"]))


def check(url, paths, questions=20, seed=1, matches=(), say=print):
    """The Checker, after it asked everything."""
    tally = Tally(*paths)
    generator = random.Random(seed)
    checker = Checker(url, tally, say)
    for type_ in tally.types:
        range_ = tally.from_ms, tally.until_ms
        checker.ask(Question(type_, [], ["service"], *range_))
        for host in generator.sample(sorted(h["host"] for h in tally.hosts.values()), min(8, len(tally.hosts))):
            checker.ask(Question(type_, [("host", "=", host)], ["host", "service", "process", "thread"], *range_,
                                 generator.choice(["value", "samples"])))
    for _ in range(questions):
        question = random_question(tally, generator)
        question.matchers += matches
        checker.ask(question)
    checker.ask_listings(tally.from_ms, tally.until_ms)
    checker.ask_agents()
    return checker


def parse_match(text):
    return [(name, how, value) for name, how, value in re.findall(r'(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"', text)]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--server", required=True)
    options.add_argument("--tally", required=True, action="append")
    options.add_argument("--questions", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--match", default="", help="added to every random question")
    given = options.parse_args()
    checker = check(given.server, given.tally, given.questions, given.seed, parse_match(given.match))
    print("%d questions (%d too large to compare stack by stack), %d rows, %d of doubtful count, %d differences" % (
        checker.questions, checker.cut, checker.rows, checker.doubtful, checker.differences))
    sys.exit(checker.differences != 0)


if __name__ == "__main__":
    main()
