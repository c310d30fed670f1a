# SPDX-License-Identifier: Apache-2.0
"""A real Pyroscope of a benchmark's own: BENCH_PYROSCOPE names its program, one binary with all of its parts. Its data
are local files; nothing of it listens beyond loopback (its parts find each other at ports 9095 and 9099), and it tells
nobody of itself.

Built and tried: v2.0.6, whose OTLP is opentelemetry-proto 1.10 (v1development 0.3.0) and takes one value a sample, and shows
only stacks with names (fleet --plain): git clone, git checkout v2.0.6, go build ./cmd/pyroscope with Go 1.25 or later."""
import json
import os
import time
import urllib.error
import urllib.request

import harness
from harness import free_port, start, wait_for

PROGRAM = os.environ.get("BENCH_PYROSCOPE", "")


class Pyroscope:
    """Limits that would refuse the load are off, as a fleet's owner would have them."""

    def __init__(self, name="pyroscope"):
        self.directory = os.path.join(harness.WORK, name)
        os.makedirs(self.directory, exist_ok=True)
        port, gossip, here = free_port(), free_port(), "127.0.0.1"
        self.url = "http://127.0.0.1:%d" % port
        self.process = start([
            PROGRAM, "-server.http-listen-address=" + here, "-server.http-listen-port=%d" % port,
            "-server.grpc-listen-address=" + here, "-memberlist.bind-addr=" + here, "-memberlist.bind-port=%d" % gossip,
            "-memberlist.advertise-addr=" + here, "-memberlist.advertise-port=%d" % gossip,
            "-distributor.ring.instance-addr=" + here, "-overrides-exporter.ring.instance-addr=" + here,
            "-query-frontend.instance-addr=" + here, "-segment-writer.lifecycler.addr=" + here,
            "-segment-writer.min-ready-duration=0", "-metastore.min-ready-duration=0", "-architecture.storage=v2",
            "-storage.backend=filesystem", "-storage.filesystem.dir=./shared", "-pyroscopedb.data-path=./local",
            "-usage-stats.enabled=false", "-self-profiling.disable-push=true", "-log.level=warn",
            "-distributor.ingestion-rate-limit-mb=10000", "-distributor.ingestion-burst-size-mb=10000",
            "-validation.reject-older-than=0s", "-querier.max-query-length=0s", "-querier.max-query-lookback=0s",
            *os.environ.get("BENCH_PYROSCOPE_OPTIONS", "").split()],
            "pyroscope.log", cwd=self.directory)
        if not wait_for(self.is_ready, 120, 0.5):
            raise RuntimeError("Pyroscope is not ready; see pyroscope.log")

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError("Pyroscope ended with %s; see pyroscope.log" % self.process.returncode)
        try:
            with urllib.request.urlopen(self.url + "/ready", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def call(self, method, question, timeout=120):
        """(seconds, answer) of its query API, which is Connect with JSON."""
        request = urllib.request.Request(self.url + "/querier.v1.QuerierService/" + method, json.dumps(question).encode(),
                                         {"Content-Type": "application/json"})
        begin = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                body = answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s: %d %s" % (method, error.code, error.read()[:300])) from error
        return time.monotonic() - begin, json.loads(body)

    def profile_types(self, begin_ms, end_ms):
        found = self.call("ProfileTypes", {"start": begin_ms, "end": end_ms})[1]
        return [kind["ID"] for kind in found.get("profileTypes", [])]

    def flame_graph(self, kind, selector, begin_ms, end_ms, nodes=8192):
        """(seconds, its total)"""
        took, found = self.call("SelectMergeStacktraces", {
            "profileTypeID": kind, "labelSelector": selector, "start": begin_ms, "end": end_ms, "maxNodes": nodes})
        return took, int(found.get("flamegraph", {}).get("total", 0))

    def stop(self):
        return harness.end(self.process, 60)
