/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-server/api/parameter_table.h"

#define OF(name_) (UINT32_C(1) << ENDPOINT_##name_)

enum {
	FRAMES = OF(flamegraph) | OF(diff) | OF(top) | OF(sandwich) | OF(heatmap_functions),
	STACKS = FRAMES | OF(timeline) | OF(hotspots),
	ONE_TYPE = STACKS | OF(heatmap) | OF(traces) | OF(modules),
	LISTINGS = OF(types) | OF(labels) | OF(label_values),
	QUESTIONS = ONE_TYPE | OF(stack) | LISTINGS,
};

#define NUMBER(minimum_, maximum_) \
	.kind = PARAMETER_NUMBER, .minimum = (minimum_), .maximum = (maximum_)
#define CHOICE(choices_) .kind = PARAMETER_CHOICE, .choices = (choices_)
#define FLAG             .kind = PARAMETER_FLAG, .otherwise = "false"

const struct parameter_row parameter_table[] = {
	/* --- which samples --- */
	{"type", ONE_TYPE, PARAMETER_TYPE, .otherwise = "on-cpu",
	 .sentence = "Values are nanoseconds or bytes, as each answer's `unit` says; "
		     "`value=samples` gives counts"},
	{"type", LISTINGS | OF(samples_delete), PARAMETER_TYPE,
	 .sentence = "Only of this type; without it of all"},
	{"from", QUESTIONS, PARAMETER_TIME, .otherwise = "now-1h",
	 .sentence = "Since when; by default an hour before until"},
	{"until", QUESTIONS, PARAMETER_TIME, .otherwise = "now", .sentence = "Until when"},
	{"from", OF(samples_delete), PARAMETER_TIME, .is_required = true,
	 .sentence = "Since when; what is deleted does not come back"},
	{"until", OF(samples_delete), PARAMETER_TIME, .is_required = true,
	 .sentence = "Until when; what is deleted does not come back"},
	{"match", QUESTIONS | OF(samples_delete), PARAMETER_SELECTOR,
	 .sentence = "Prometheus style: {service=\"api\",host=~\"web.*\"}; operators = != =~ !~"},
	{"all", OF(samples_delete), PARAMETER_FLAG,
	 .sentence = "true: without match, everything is meant"},
	{"exact", FRAMES | OF(timeline), FLAG,
	 .sentence =
		 "Only samples that have a time of their own, from and until to the millisecond"},
	{"build_id", FRAMES, PARAMETER_BUILD_ID,
	 .sentence = "Only stacks with a frame of the module of this build-id"},
	{"focus", STACKS, PARAMETER_PATTERN,
	 .sentence = "Only stacks with a frame that matches this regular expression (RE2)"},
	{"ignore", STACKS, PARAMETER_PATTERN, .sentence = "No stacks with a frame that matches"},

	/* --- of a comparison: the other side --- */
	{"base.type", OF(diff), PARAMETER_TYPE,
	 .sentence = "The base side's type; by default the same"},
	{"base.from", OF(diff), PARAMETER_TIME,
	 .sentence = "By default the same length of time just before, or with base.match or "
		     "base.build_id the same time"},
	{"base.until", OF(diff), PARAMETER_TIME, .sentence = "As base.from"},
	{"base.match", OF(diff), PARAMETER_SELECTOR, .sentence = "By default the same as match"},
	{"base.build_id", OF(diff), PARAMETER_BUILD_ID,
	 .sentence = "By default the same as build_id; empty: any"},
	{"norm", OF(diff), CHOICE("per_second|share|raw"), .otherwise = "per_second",
	 .sentence = "What is compared, value by time, by the side's whole value, or as it is"},

	/* --- which frames, and under which names --- */
	{"hide", STACKS, PARAMETER_PATTERN,
	 .sentence = "Leave matching frames out of their stacks"},
	{"hide_kind", FRAMES, PARAMETER_TEXT,
	 .sentence =
		 "Leave out frames of these kinds, separated by commas: native, inline, kernel, "
		 "interpreter, jit, gpu, runtime, unresolved"},
	{"hide_runtime", STACKS | OF(stack), PARAMETER_FLAG, .otherwise = "true",
	 .sentence = "Leave out frames of an interpreter's own code that a frame of its language "
		     "stands for"},
	{"hide_module", FRAMES, PARAMETER_PATTERN,
	 .sentence =
		 "Leave out frames of modules whose name matches this regular expression (RE2)"},
	{"only_module", FRAMES, PARAMETER_PATTERN,
	 .sentence = "Leave out frames of all other modules and of none"},
	{"invert", FRAMES & ~OF(sandwich), FLAG, .sentence = "Leaf first"},
	{"recursion", FRAMES & ~OF(sandwich), CHOICE("none|direct|all"), .otherwise = "none",
	 .sentence = "direct: a function that calls itself is one frame. all: also one that is "
		     "called through others"},
	{"root", FRAMES, PARAMETER_TEXT,
	 .sentence = "Only what lies below this path of names or signatures of frames from below "
		     "the root, joined by \";\""},
	{"demangle", STACKS | OF(traces) | OF(stack), CHOICE("full|simple|none"),
	 .otherwise = "full",
	 .sentence = "full: names without parameters, as `c++filt -p` has them"},
	{"collapse", FRAMES | OF(hotspots), CHOICE("none|name"), .otherwise = "none",
	 .sentence =
		 "Overloads of C++ and instances of Rust's generics are functions of their own"},
	{"idle", FRAMES, CHOICE("show|fold"), .otherwise = "show",
	 .sentence = "fold: of off-cpu and still-blocked, a stack of waits for work to come is one "
		     "frame `[idle]` below its groups"},
	{"function", OF(sandwich), PARAMETER_TEXT, .is_required = true,
	 .sentence = "The name or signature as answers show it, or a regular expression of names"},
	{"function", OF(traces), PARAMETER_TEXT, .otherwise = "",
	 .sentence = "The name or signature as answers show it, or a regular expression of names"},
	{"function_match", OF(sandwich) | OF(traces), CHOICE("exact|regex"), .otherwise = "exact",
	 .sentence =
		 "regex: function is a regular expression (RE2) that a part of the name matches"},
	{"module", OF(sandwich), PARAMETER_TEXT,
	 .sentence = "Only functions of this module (name or build-id)"},
	{"file", OF(sandwich), PARAMETER_TEXT,
	 .sentence = "Only where the source file is this one"},
	{"search", OF(top), PARAMETER_PATTERN,
	 .sentence =
		 "Regular expression (RE2): found has the sum of the stacks of which a frame, or "
		 "a label of group_by, has a part that matches"},
	{"search", OF(heatmap_functions), PARAMETER_PATTERN,
	 .sentence = "Regular expression (RE2): only functions have a row of whose name a part "
		     "matches"},

	/* --- how it is put together --- */
	{"group_by", OF(flamegraph) | OF(diff), PARAMETER_TEXT, .otherwise = "process",
	 .sentence =
		 "Labels that make the first levels of the tree, separated by commas; empty for "
		 "none"},
	{"group_by", OF(top) | OF(heatmap_functions), PARAMETER_TEXT, .otherwise = "",
	 .sentence = "As for the flame graph; matters together with root only"},
	{"group_by", OF(sandwich), PARAMETER_TEXT, .otherwise = "",
	 .sentence = "Labels that end the callers' paths"},
	{"group_by", OF(timeline), PARAMETER_TEXT, .otherwise = "",
	 .sentence = "Labels, separated by commas; empty: one series"},
	{"group_by", OF(hotspots), PARAMETER_TEXT, .otherwise = "host,process",
	 .sentence = "Labels that make a process, separated by commas; empty: all is one"},
	{"value", STACKS, CHOICE("value|samples"), .otherwise = "value",
	 .sentence = "The type's unit or the number of samples"},
	{"step", OF(timeline), PARAMETER_STEP, 300, 11000,
	 .sentence = "A duration, a multiple of 1m, or of 1s and a part of 1m, as 1s, 5s, 10s; by "
		     "default the shortest one of whole minutes with at most 300 steps"},
	{"step", OF(hotspots), PARAMETER_MINUTES, 288, 2000,
	 .sentence = "A duration, a multiple of 1m, with at most 2000 in the range; by default the "
		     "shortest one with at most 288 steps"},
	{"by", OF(heatmap) | OF(heatmap_functions), CHOICE("time|function"), .otherwise = "time",
	 .sentence = "What a row is"},
	{"column", OF(heatmap), PARAMETER_DURATION,
	 .sentence = "Length of a column; at most 3600 columns"},
	{"column", OF(heatmap_functions), PARAMETER_STEP, 300, 3600,
	 .sentence = "Length of a column; at most 3600 columns"},
	{"rows", OF(heatmap), NUMBER(1, 100), .otherwise = "50",
	 .sentence = "Into how many parts a column is divided, each of whole milliseconds"},
	{"sort", OF(diff), CHOICE("self|total"), .otherwise = "self",
	 .sentence = "Which value of functions is compared"},
	{"sort", OF(top), CHOICE("self|total"), .otherwise = "self",
	 .sentence = "Functions with most value of their own first, or with their callees'"},
	{"sort", OF(heatmap_functions), CHOICE("self|total"), .otherwise = "self",
	 .sentence = "Heaviest by what they have themselves, or with all they call"},
	{"sort", OF(hotspots), CHOICE("self|total"),
	 .sentence = "A function has its own value, or with its callees'"},
	{"min_change", OF(hotspots), PARAMETER_SHARE, .otherwise = "0.002",
	 .sentence = "Shares of a process that differ by less are no change"},

	/* --- how much of it --- */
	{"limit", OF(diff) | OF(top), NUMBER(1, 1000000), .otherwise = "1000",
	 .sentence = "Functions in the answer at most"},
	{"limit", OF(timeline), NUMBER(1, 1000), .otherwise = "20",
	 .sentence = "Series at most, the largest first; the sum of all others is in other"},
	{"limit", OF(heatmap_functions), NUMBER(1, 500), .otherwise = "50",
	 .sentence = "Functions at most, the heaviest first"},
	{"limit", OF(hotspots), NUMBER(0, 10000), .otherwise = "100",
	 .sentence = "Changes at most, the most significant first"},
	{"limit", OF(traces), NUMBER(1, 1000), .otherwise = "20",
	 .sentence = "Traces at most, the most valuable first"},
	{"limit", OF(stack), NUMBER(0, 1000), .otherwise = "20",
	 .sentence = "Processes of each type, and traces of each type, the most valuable first"},
	{"limit", OF(modules), NUMBER(1, 100000), .otherwise = "5000",
	 .sentence = "How many of the list"},
	{"offset", OF(modules), NUMBER(0, UINT32_MAX), .otherwise = "0",
	 .sentence = "How many of it to leave out first"},
	{"processes", OF(hotspots), NUMBER(0, 1000), .otherwise = "10",
	 .sentence = "Processes whose steps are shown, the largest first"},
	{"top", OF(hotspots), NUMBER(1, 100), .otherwise = "5",
	 .sentence = "Functions of a step, the largest first"},
	{"max_nodes", OF(flamegraph), NUMBER(1, 1000000), .otherwise = "1000000",
	 .sentence =
		 "Nodes in the answer at most; what is folded away becomes `[cut]` children and "
		 "is counted"},
	{"max_nodes", OF(sandwich), NUMBER(1, 1000000), .otherwise = "1000000",
	 .sentence = "Nodes of each tree at most"},
	{"max_nodes", OF(diff), NUMBER(1, 1000000),
	 .sentence = "Nodes in the answer at most; what is folded away is counted for both sides"},
	{"min_share", OF(flamegraph) | OF(sandwich), PARAMETER_SHARE, .otherwise = "0",
	 .sentence =
		 "What has a smaller part of the answer's root is folded away, as by max_nodes"},

	/* --- how it is written --- */
	{"stack_ids", OF(flamegraph) | OF(top), FLAG,
	 .sentence = "With format=json: each node or function that has self also has `stack`"},
	{"errors", OF(flamegraph), FLAG,
	 .sentence = "json, columns and html have `self_error` and `total_error` of each node"},
	{"errors", OF(sandwich), FLAG,
	 .sentence = "Both trees have `self_error` and `total_error` of each node"},
	{"errors", OF(timeline), FLAG, .sentence = "Series have `errors` (csv always has)"},
	{"format", OF(flamegraph), CHOICE("json|columns|folded|pprof|speedscope|svg|html|csv|md"),
	 .otherwise = "json",
	 .sentence = "All but json carry the accounting in the header Farflame-Accounting"},
	{"format", OF(diff), CHOICE("json|folded|svg|csv|md"), .otherwise = "json",
	 .sentence = "All but json carry the compared side's accounting in the header "
		     "Farflame-Accounting"},
	{"format", OF(top), CHOICE("json|csv|md"), .otherwise = "json",
	 .sentence = "csv has a row per function, md a report"},
	{"format", OF(timeline), CHOICE("json|csv"), .otherwise = "json",
	 .sentence = "csv has a row per series and step"},
	{"format", OF(heatmap_functions), CHOICE("json|csv"), .otherwise = "json",
	 .sentence = "csv has a row per function and step that is not zero"},
	{"format", OF(sandwich) | OF(hotspots), CHOICE("json"), .otherwise = "json",
	 .sentence = "There is one"},

	/* --- modules, operations --- */
	{"offer", OF(modules_announce), CHOICE("debug|executable"),
	 .sentence = "What the sender has of these modules, files with debug information or with "
		     "code"},
	{"name", OF(module_symbols), PARAMETER_TEXT, .is_required = true,
	 .sentence = "Names, with commas between them, at most 64 of at most 255 bytes"},
	{"for", OF(readyz), CHOICE("reports|queries"), .otherwise = "reports",
	 .sentence = "What it has to be ready for"},
	{0},
};
