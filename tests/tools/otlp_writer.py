# SPDX-License-Identifier: Apache-2.0
"""Requests made with protobuf's own Python library: what an agent or a foreign sender could have sent."""
import os
import time

import otlp


class Request:
    """One ExportProfilesServiceRequest being built; every table's entry 0 is the empty one."""

    def __init__(self, build):
        self.pb = otlp.messages(build)
        self.message = self.pb.ExportProfilesServiceRequest()
        self.tables = self.message.dictionary
        self.known = {}
        self.string("")
        for table in ("mapping_table", "location_table", "function_table", "link_table", "attribute_table",
                      "stack_table"):
            getattr(self.tables, table).add()

    def string(self, text):
        if text not in self.known:
            self.known[text] = len(self.tables.string_table)
            self.tables.string_table.append(text)
        return self.known[text]

    def once(self, key, table, fill):
        """The number of an entry, made when the key is new."""
        if key not in self.known:
            entry = getattr(self.tables, table).add()
            fill(entry)
            self.known[key] = len(getattr(self.tables, table)) - 1
        return self.known[key]

    def attribute(self, name, value):
        def fill(entry):
            entry.key_strindex = self.string(name)
            if isinstance(value, bool):
                entry.value.bool_value = value
            else:
                entry.value.string_value = value
        return self.once(("attribute", name, value), "attribute_table", fill)

    def mapping(self, name, build_id="", base=""):
        def fill(entry):
            entry.filename_strindex = self.string(name)
            if build_id:
                entry.attribute_indices.append(self.attribute("process.executable.build_id.gnu", build_id))
            if base:
                entry.attribute_indices.append(self.attribute("farflame.address_base", base))
        return self.once(("mapping", name, build_id, base), "mapping_table", fill)

    def frame(self, frame):
        """frame: ("native" | "kernel" | "runtime", mapping, address), ("anon", address) or (type, function, file, line), with the
        number of its mapping behind it where it has one."""
        def fill(entry):
            kind = frame[0]
            if kind == "anon":
                entry.address = frame[1]
                entry.attribute_indices.append(self.attribute("profile.frame.type", "native"))
                entry.attribute_indices.append(self.attribute("farflame.anonymous", True))
                return
            entry.attribute_indices.append(self.attribute("profile.frame.type", "native" if kind == "runtime" else kind))
            if kind == "runtime":
                entry.attribute_indices.append(self.attribute("farflame.runtime", True))
            if isinstance(frame[1], int):
                entry.mapping_index, entry.address = frame[1], frame[2]
                return
            line = entry.lines.add()
            line.line = frame[3]
            entry.mapping_index = frame[4] if len(frame) > 4 else 0

            def fill_function(function):
                function.name_strindex = self.string(frame[1])
                function.filename_strindex = self.string(frame[2])
            line.function_index = self.once(("function",) + frame[1:3], "function_table", fill_function)
        return self.once(("frame",) + frame, "location_table", fill)

    def stack(self, frames):
        """frames: leaf first."""
        def fill(entry):
            entry.location_indices.extend(self.frame(frame) for frame in frames)
        return self.once(("stack",) + tuple(frames), "stack_table", fill)

    def resource(self, **attributes):
        resource = self.message.resource_profiles.add()
        for name, value in attributes.items():
            attribute = resource.resource.attributes.add()
            attribute.key = name
            if isinstance(value, int):
                attribute.value.int_value = value
            else:
                attribute.value.string_value = value
        return resource

    def profile(self, resource, type_="on-cpu", unit="nanoseconds", scope="farflame-agent", time_ns=None,
                profile_id=None, period=("cpu", "nanoseconds", 10101010)):
        block = resource.scope_profiles.add()
        block.scope.name = scope
        profile = block.profiles.add()
        profile.sample_type.type_strindex, profile.sample_type.unit_strindex = self.string(type_), self.string(unit)
        profile.period_type.type_strindex = self.string(period[0])
        profile.period_type.unit_strindex = self.string(period[1])
        profile.period = period[2]
        profile.time_unix_nano = time_ns or time.time_ns() - 10**9
        profile.duration_nano = 10**9
        profile.profile_id = profile_id or os.urandom(16)
        return profile

    def sample(self, profile, frames, values, thread="", incomplete="", **attributes):
        """attributes: of the sample, their names with _ for dots."""
        sample = profile.samples.add()
        sample.stack_index = self.stack(frames)
        sample.values.extend(values)
        if thread:
            sample.attribute_indices.append(self.attribute("thread.name", thread))
        if incomplete:
            sample.attribute_indices.append(self.attribute("farflame.incomplete", incomplete))
        for name, value in attributes.items():
            sample.attribute_indices.append(self.attribute(name.replace("_", "."), value))

    def counters(self, host, agent_id, seq, acknowledged, taken, time_ns=None, rate_hz=99, stacks=None, more=None, version="0.1.0",
                 **lost):
        """The agent's own resource and its profile without samples."""
        attributes = {"host.name": host, "os.version": "6.1.0-test", "service.version": version,
                      "farflame.agent.id": agent_id, "farflame.report.seq": seq,
                      "farflame.report.acknowledged": acknowledged, "farflame.rate_hz": rate_hz,
                      "farflame.taken": taken, "farflame.idle": 1}
        attributes.update({"farflame.lost." + reason: count for reason, count in lost.items()})
        attributes.update({"farflame.stacks." + result: count for result, count in (stacks or {}).items()})
        attributes.update({"farflame." + name: count for name, count in (more or {}).items()})
        return self.profile(self.resource(**attributes), time_ns=time_ns)

    def bytes(self):
        return self.message.SerializeToString()
