# farflame: continuous profiling with remote symbolization.
#
# make                 build/farflame-agent, build/farflame-server, build/libfarflame-malloc.so
# make check           unit, golden and fuzz-corpus tests under ASan and UBSan; no root, no network
# make check-threads   the store's tests of several threads under ThreadSanitizer
# make check-web       types, rules and unit tests of the page (npm fetches the tools; building needs none)
# make check-system    as root: real BPF on this kernel, real sources, real browser
# make check-unwind    stacks against gdb's, small and real programs, as a table (UNWIND_STOPS=, UNWIND_ONLY=)
# make check-kill      a server killed 100 times (KILLS=) under load loses and doubles nothing
# make check-power     a server in a QEMU guest whose power goes 20 times (RESETS=) loses and doubles nothing
# make check-kernels   the capture tests on other kernels under QEMU (KERNELS="5.10 7.2" chooses)
# make check-units     as root: what "make install" puts there, started by systemd in Debian 12 guests with other kernels
# make check-arm64     the agent compiled for arm64, its unwinder under qemu (ARM64_KERNEL=1: an arm64 kernel too)
# make fuzz TARGET=otlp SECONDS=60   one fuzz target for some time; without TARGET all of them
# make fuzz-server SECONDS=60   mutated requests at a whole server under the sanitizers
# make bench           speed and memory beside their peers, as a table (PARTS="ingest query"; sh tests/bench/run.sh --help)
# make layers          nobody includes what is not theirs
# make format          clang-format over all C
# make install DESTDIR=  programs, the allocation library, man pages, units; configuration where there is none
# make clean
# make help            this list
#
# BUILD=DIR builds elsewhere; from two directories the bytes are the same.
BUILD  ?= build
PREFIX ?= /usr
CC     ?= cc
CLANG  ?= clang
CXX    ?= c++
CFLAGS ?= -O2 -g
VERSION := 0.1.0
WARN   = -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
	 -Wformat=2 -Wundef -Wno-missing-field-initializers
REPRODUCIBLE = -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(BUILD))=build
HARDEN = -fstack-protector-strong -fPIE
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DFARFLAME_VERSION='"$(VERSION)"' $(REPRODUCIBLE) $(WARN) \
	     $(HARDEN) $(CFLAGS) -pthread -iquote . -iquote $(BUILD) -MD -MP
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,--build-id=sha1 -pthread $(LDFLAGS)
# What is built for is what the compiler says, so CC=aarch64-linux-gnu-gcc is all that arm64 takes.
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_ARCH  := $(subst x86_64,x86,$(subst aarch64,arm64,$(firstword $(subst -, ,$(MULTIARCH)) $(shell uname -m))))

# V=1 shows whole commands.
V ?= 0
ifeq ($(V),0)
Q = @
say = @printf '  %-6s %s\n' $(1) $(2)
else
Q =
say =
endif

sources = $(sort $(wildcard $(1)/*.$(2) $(1)/*/*.$(2) $(1)/*/*/*.$(2) $(1)/*/*/*/*.$(2)))
objects = $(patsubst %.c,$(BUILD)/%.o,$(call sources,$(1),c))

protos    := $(patsubst %.proto,$(BUILD)/%.pb-c.c,$(wildcard schema/wire/*.proto))
wire      := $(protos:.c=.o)
common    := $(call objects,common)
in_program := $(call objects,node-agent/malloc)
agent     := $(filter-out $(in_program),$(call objects,node-agent))
server    := $(call objects,symbol-server) $(patsubst %.cc,$(BUILD)/%.o,$(call sources,symbol-server,cc))
embedded_files := $(BUILD)/symbol-server/embedded.o $(BUILD)/symbol-server/formats/report_files.o
skeletons := $(patsubst bpf/%.bpf.c,$(BUILD)/bpf/%.skel.h,$(wildcard bpf/*.bpf.c))

# The agent links its libraries statically: fewer shared objects, less memory on every host.
AGENT_LIBS  = -Wl,-Bstatic -lbpf -lelf -lz -lprotobuf-c -lnettle -lseccomp -lssl -lcrypto \
	      -Wl,-Bdynamic -ldl
SERVER_LIBS = -lmicrohttpd -lsqlite3 -lelf -lcurl -lprotobuf-c -lnettle -lseccomp \
	      -lzstd -lz -ldeflate -llzma -lcjson -lre2 -liberty -lstdc++ -lm

all: $(BUILD)/farflame-agent $(BUILD)/farflame-server $(BUILD)/libfarflame-malloc.so

$(BUILD)/farflame-agent: $(agent) $(common) $(wire)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(ALL_LDFLAGS) -Wl,--gc-sections $^ $(AGENT_LIBS) -o $@
$(BUILD)/farflame-server: $(server) $(embedded_files) $(common) $(wire)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(ALL_LDFLAGS) $^ $(SERVER_LIBS) -o $@

# What goes into other programs has no code of sanitizers in it, and asks for nothing but the C library.
$(in_program): ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(REPRODUCIBLE) $(WARN) -O2 -g -fPIC -fno-builtin \
	-fvisibility=hidden -fno-plt -fasynchronous-unwind-tables -iquote . -MD -MP
$(BUILD)/libfarflame-malloc.so: $(in_program)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,relro,-z,now,-z,defs -Wl,--build-id=sha1 -Wl,--as-needed $^ -ldl -o $@

# --- generated: protobuf, BPF skeletons, the page, embedded files ---

$(BUILD)/schema/wire/%.pb-c.c: schema/wire/%.proto Makefile
	@mkdir -p $(@D)
	$(call say,PROTOC,$<)
	$(Q)protoc-c --proto_path=schema/wire --c_out=$(@D) $<
$(BUILD)/schema/wire/%.pb-c.h: $(BUILD)/schema/wire/%.pb-c.c ;
$(BUILD)/schema/wire/%.pb-c.o: $(BUILD)/schema/wire/%.pb-c.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-shadow -c $< -o $@

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -mcpu=v2 -D__TARGET_ARCH_$(BPF_ARCH) $(REPRODUCIBLE) -O2 -g -Wall -iquote . \
		$(addprefix -idirafter /usr/include/,$(MULTIARCH)) $(patsubst %,-idirafter /usr/%/include,$(MULTIARCH)) \
		-MD -MP -MT $@ -MF $(@:.o=.d) \
		-c $< -o $@.full
	$(Q)bpftool gen object $@ $@.full
$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(Q)bpftool gen skeleton $< name $* > $@

web := $(sort $(shell find symbol-server/web -name node_modules -prune -o -path symbol-server/web/report -prune -o \
	\( -name '*.ts' -o -name '*.css' -o -name '*.html' \) -print))
$(BUILD)/embed/page.html.gz: $(web) Makefile
	@mkdir -p $(@D)
	$(call say,WEB,$@)
	$(Q)esbuild symbol-server/web/main.ts --bundle --minify --format=iife --target=es2020 \
		--log-level=warning --outfile=$(BUILD)/embed/page.js
	$(Q)esbuild symbol-server/web/style.css --bundle --minify --log-level=warning \
		--outfile=$(BUILD)/embed/page.css
	$(Q)awk -v js=$(BUILD)/embed/page.js -v css=$(BUILD)/embed/page.css \
		'function put(f,  l) { while ((getline l < f) > 0) print l; close(f) } \
		 /<!-- *style *-->/ { printf "<style>"; put(css); print "</style>"; next } \
		 /<!-- *script *-->/ { printf "<script>"; put(js); print "</script>"; next } { print }' \
		symbol-server/web/index.html > $(BUILD)/embed/page.html
	$(Q)for part in js css; do /usr/bin/printf "$$(sha256sum < $(@D)/page.$$part | cut -c1-64 | \
		sed 's/../\\x&/g')" | base64 | tr -d '\n' > $(@D)/page.$$part.hash; done
	$(Q)gzip -9 -n -c $(BUILD)/embed/page.html > $@
report := $(sort $(wildcard symbol-server/web/report/*))
$(BUILD)/embed/report/report.html: $(web) $(report) Makefile
	@mkdir -p $(@D)
	$(call say,WEB,$@)
	$(Q)esbuild symbol-server/web/report/report.ts symbol-server/web/report/svg.ts symbol-server/web/report/report.css \
		--bundle --minify --format=iife --target=es2021 --log-level=warning --outdir=$(@D)
	$(Q)for script in svg report; do /usr/bin/printf "$$(sha256sum < $(@D)/$$script.js | cut -c1-64 | \
		sed 's/../\\x&/g')" | base64 | tr -d '\n' > $(@D)/$$script.js.hash; done
	$(Q)awk -v js=$(@D)/report.js -v css=$(@D)/report.css -v hash="$$(cat $(@D)/report.js.hash)" \
		'function put(f,  l) { while ((getline l < f) > 0) printf "%s%s", more++ ? "\n" : "", l; close(f) } \
		 { gsub(/@script-hash@/, hash) } \
		 /<!-- *style *-->/ { print "<style>"; more = 0; put(css); print "</style>"; next } \
		 /<!-- *script *-->/ { printf "<script>"; more = 0; put(js); print "\n</script>"; next } { print }' \
		symbol-server/web/report/report.html > $@
$(BUILD)/symbol-server/formats/report_files.o: symbol-server/formats/report_files.S $(BUILD)/embed/report/report.html
	@mkdir -p $(@D)
	$(Q)$(CC) -c -I $(BUILD)/embed/report $< -o $@
$(BUILD)/embed/openapi.yaml: schema/rest/openapi.yaml
	@mkdir -p $(@D)
	@cp $< $@
$(BUILD)/embed/%.sql: schema/store/sqlite/%.sql
	@mkdir -p $(@D)
	@cp $< $@
$(BUILD)/embed/clickhouse_%.sql: schema/store/clickhouse/%.sql
	@mkdir -p $(@D)
	@cp $< $@
embedded := page.html.gz openapi.yaml $(notdir $(wildcard schema/store/sqlite/*.sql)) \
	$(addprefix clickhouse_,$(notdir $(wildcard schema/store/clickhouse/*.sql)))
$(BUILD)/symbol-server/embedded.o: symbol-server/embedded.S $(addprefix $(BUILD)/embed/,$(embedded))
	@mkdir -p $(@D)
	$(Q)$(CC) -c -I $(BUILD)/embed $< -o $@

# A generated header has to exist before its user is compiled for the first time; after that the .d
# files know who needs it.
$(agent): | $(skeletons)
$(agent) $(server) $(common): | $(protos)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@
$(BUILD)/%.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 $(REPRODUCIBLE) -Wall -Wextra $(HARDEN) $(CFLAGS) -pthread -iquote . -MD -MP -c $< -o $@

# --- tests ---

unit   := $(patsubst tests/%.c,$(BUILD)/tests/%,$(call sources,tests/unit,c))
fuzzed := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz/*_fuzz.c))
# Everything but the two main()s, so that a test can include any header of the tree. One archive per
# program: the same name may mean another thing on the other side. A test takes its own side's first.
testable := $(BUILD)/testable-agent.a $(BUILD)/testable-server.a
agent_tests := aggregate allocations bpf capture contexts file_parser kernel network processes report runtimes ship stacks unwind waits agent_%
archives_of = $(if $(filter $(addprefix $(BUILD)/tests/unit/,$(addsuffix /%,$(filter-out %_%,$(agent_tests))) \
	$(filter %_%,$(agent_tests))),$(1)),$(testable),$(BUILD)/testable-server.a $(BUILD)/testable-agent.a)
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
TEST_LIBS = -lbpf $(SERVER_LIBS) -lssl -lcrypto -ldl

$(BUILD)/testable-agent.a: $(filter-out %/main.o,$(agent)) $(filter %/poisson.o %/sampled_blocks.o %/site_rates.o %/malloc/batch.o,$(in_program)) \
	$(common) $(wire)
$(BUILD)/testable-server.a: $(filter-out %/main.o,$(server)) $(embedded_files) $(common) $(wire)
$(testable):
	@rm -f $@
	@ar rcs $@ $^
$(unit) $(fuzzed): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(testable)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $< $(call archives_of,$@) $(TEST_LIBS) -o $@
$(unit:=.o) $(fuzzed:=.o): | $(protos) $(skeletons)
# A made-up fleet of agents that keeps an exact tally; nothing of the server is in it.
fleet := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard tests/tools/fleet/*.c)) common/buffer.c)
$(BUILD)/tests/tools/fleet/fleet: $(fleet)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -lz -lm -o $@
# A fleet's day for measurements of queries.
$(BUILD)/tests/bench/query_load: $(BUILD)/tests/bench/query_load.o $(BUILD)/testable-server.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -Wl,--as-needed $(SERVER_LIBS) -o $@
# Whether reports wait for work on days' files.
$(BUILD)/tests/bench/day_load: $(BUILD)/tests/bench/day_load.o $(BUILD)/testable-server.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -Wl,--as-needed $(SERVER_LIBS) -o $@
# What the agent's spool costs.
$(BUILD)/tests/bench/spool_load: $(BUILD)/tests/bench/spool_load.o $(BUILD)/testable-agent.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -Wl,--as-needed $(TEST_LIBS) -o $@
# What comparisons with JVMs' own tools run: names of their code, as the agent has them.
$(BUILD)/tests/tools/hotspot_name: $(BUILD)/tests/tools/hotspot_name.o $(BUILD)/testable-agent.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -Wl,--as-needed $(TEST_LIBS) -o $@
# What comparisons with other symbolizers run: the converter and lookups as a program.
$(BUILD)/tests/tools/symbolize_addresses: $(BUILD)/tests/tools/symbolize_addresses.o $(BUILD)/testable-server.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie -pthread $^ -Wl,--as-needed $(SERVER_LIBS) -o $@

check:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check CFLAGS="-O1 -g -Werror $(SANITIZE)" run-check
run-check: $(unit) $(fuzzed)
	@TAP_JOBS=$$(nproc) sh tests/tools/run_tap.sh $(BUILD) $(unit) -- $(fuzzed)
check-threads:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/threads CFLAGS="-O1 -g -fsanitize=thread" run-threads
threaded = $(addprefix $(BUILD)/tests/unit/store/,concurrency_test slow_disk_test delete_test rollup_delete_test damage_test \
	   recent_test disk_limit_test)
run-threads: $(threaded)
	@sh tests/tools/run_tap.sh $(BUILD) $(threaded)
check-web:
	@FARFLAME_BUILD=$(BUILD) sh tests/tools/run_tap.sh $(BUILD) $(sort $(wildcard tests/web/*_test.mjs))
check-system: all
	@sh tests/system/run.sh $(BUILD)
check-unwind: all
	@UNWIND_PROGRAMS=all UNWIND_STOPS=$${UNWIND_STOPS:-120} FARFLAME_BUILD=$(BUILD) \
		/usr/bin/python3 -B tests/system/unwind_agree_test.py
check-kill: all
	@KILLS=$${KILLS:-100} FARFLAME_BUILD=$(BUILD) /usr/bin/python3 -B tests/system/kill_test.py
check-power: all
	@RESETS=$${RESETS:-20} /usr/bin/python3 -B tests/kernels/power_loss.py $(BUILD)
check-kernels: all
	@sh tests/kernels/run.sh $(BUILD) $(KERNELS)
check-units: all
	@sh tests/kernels/units.sh $(BUILD) $(KERNELS)
check-arm64:
	@sh tests/arm64/run.sh $(BUILD)
bench: all $(BUILD)/tests/bench/query_load $(BUILD)/tests/bench/day_load $(BUILD)/tests/bench/spool_load $(BUILD)/tests/tools/fleet/fleet
	@sh tests/bench/run.sh $(BUILD) $(PARTS)
fuzz:
	@sh tests/fuzz/run.sh $(BUILD) "$(TARGET)" "$(SECONDS)"
fuzz-server:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/check CFLAGS="-O1 -g -Werror $(SANITIZE)" $(BUILD)/check/farflame-server
	@/usr/bin/python3 -B tests/fuzz/server.py $(BUILD)/check/farflame-server $(SECONDS)
layers: all
	@sh tests/layers.sh $(BUILD)
	@sh tests/rooms.sh
format:
	clang-format-14 -i $(foreach d,common node-agent symbol-server tests bpf,$(shell find $(d) -name '*.[ch]'))

# The libFuzzer build of one target, used by tests/fuzz/run.sh:
# make BUILD=… CC=clang CFLAGS="… -fsanitize=fuzzer-no-link" build/tests/fuzz/otlp_libfuzzer
$(BUILD)/tests/fuzz/%_libfuzzer: tests/fuzz/%_fuzz.c $(testable) | $(protos) $(skeletons)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DFUZZ_LIBFUZZER -fsanitize=fuzzer $< $(call archives_of,$@) $(TEST_LIBS) -o $@

install: all
	install -Dm755 $(BUILD)/farflame-agent $(DESTDIR)$(PREFIX)/sbin/farflame-agent
	install -Dm755 $(BUILD)/farflame-server $(DESTDIR)$(PREFIX)/sbin/farflame-server
	install -Dm755 $(BUILD)/libfarflame-malloc.so $(DESTDIR)$(PREFIX)/lib/libfarflame-malloc.so
	install -Dm644 deploy/include/farflame_context.h $(DESTDIR)$(PREFIX)/include/farflame_context.h
	install -Dm644 deploy/man/farflame-agent.8 $(DESTDIR)$(PREFIX)/share/man/man8/farflame-agent.8
	install -Dm644 deploy/man/farflame-server.8 $(DESTDIR)$(PREFIX)/share/man/man8/farflame-server.8
	for program in agent server; do \
		install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)/etc/farflame && \
		sed 's#=/usr/sbin/#=$(PREFIX)/sbin/#' deploy/systemd/farflame-$$program.service \
			>$(DESTDIR)$(PREFIX)/lib/systemd/system/farflame-$$program.service && \
		{ [ -e $(DESTDIR)/etc/farflame/$$program.conf ] || \
		install -m644 deploy/config/farflame-$$program.conf $(DESTDIR)/etc/farflame/$$program.conf; } || exit 1; \
	done

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile
clean:
	rm -rf $(BUILD)

.PHONY: all check run-check check-threads run-threads check-web check-system check-unwind check-kill check-power check-kernels check-units check-arm64 bench fuzz fuzz-server layers format install help clean
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
