# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse of a test's own: on loopback, with its own configuration and directories, ended by its process id."""
import os
import shutil
import urllib.error
import urllib.parse
import urllib.request

import harness

PROGRAM = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
CONFIG = """<yandex>
 <logger><level>warning</level><log>./server.log</log><errorlog>./error.log</errorlog><size>10M</size><count>1</count></logger>
 <http_port>%(http)d</http_port><tcp_port>%(tcp)d</tcp_port><interserver_http_port>%(between)d</interserver_http_port>
 <listen_host>127.0.0.1</listen_host><max_connections>256</max_connections><max_concurrent_queries>50</max_concurrent_queries>
 <path>./data/</path><tmp_path>./tmp/</tmp_path><user_files_path>./files/</user_files_path>
 <format_schema_path>./formats/</format_schema_path><mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>
 <users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
 <remote_servers><one><shard><replica><host>127.0.0.1</host><port>%(tcp)d</port><user>farflame</user><password>se:c/ret</password></replica></shard></one></remote_servers>
</yandex>
"""
USERS = """<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage><max_threads>2</max_threads></default></profiles>
<users><farflame><password>se:c/ret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></farflame></users>
<quotas><default></default></quotas></yandex>
"""


class ClickHouse:
    """Has one user, farflame, whose password needs quotes in a URL."""

    def __init__(self, name="clickhouse"):
        self.directory = os.path.join(harness.WORK, name)
        os.makedirs(self.directory)
        for attempts_left in (2, 1, 0):
            self.ports = {"http": harness.free_port(), "tcp": harness.free_port(), "between": harness.free_port()}
            for file, text in (("config.xml", CONFIG % self.ports), ("users.xml", USERS)):
                with open(os.path.join(self.directory, file), "w", encoding="utf-8") as out:
                    out.write(text)
            try:
                self.start()
                break
            except RuntimeError:  # somebody else has taken a port meanwhile
                if not attempts_left:
                    raise

    def start(self):
        self.process = harness.start([PROGRAM, "--config-file=config.xml"], "clickhouse.log", cwd=self.directory)
        if not harness.wait_for(self.answers, 60):
            raise RuntimeError("ClickHouse does not answer")

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError("ClickHouse ended with %s" % self.process.returncode)
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def store(self, database, more=""):
        """What --store is given."""
        return "clickhouse=http://farflame:se%%3Ac%%2Fret@127.0.0.1:%d/%s%s" % (self.ports["http"], database, more)

    def ask(self, sql, database="default"):
        request = urllib.request.Request("http://127.0.0.1:%d/?database=%s" % (self.ports["http"], database),
                                         sql.encode(), {"X-ClickHouse-User": "farflame", "X-ClickHouse-Key": "se:c/ret"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError("%s: %s" % (sql[:200], error.read().decode(errors="replace")[:400])) from error

    def stop(self):
        return harness.end(self.process)

    def kill(self):
        return harness.end(self.process, how=harness.signal.SIGKILL)
